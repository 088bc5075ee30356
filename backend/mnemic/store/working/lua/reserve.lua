-- Reserves the place of a value on its way to PostgreSQL. ARGV: 10 field, 11 size.
-- Gives {'ok', a version later than what is here, when that expires ('' if it is gone), expiry}; {'full', what}; {'gated', gate}.
local field, size = ARGV[10], tonumber(ARGV[11])
local shut = gate()
if shut then return {'gated', shut} end
local old = head_of(field)
local what = exceeded(field, old, size)
if what then return {'full', what} end
old = head_of(field)
local live = is_live(old)
local before = redis.call('PTTL', HEADS)
local more = math.max(0, size - (live and old.size or 0))
local keys = (is_key(field) and not live) and 1 or 0
local place = string.format('%.0f:%.0f:%d:%s', more, NOW + RESERVED_MS, keys, ID)
if redis.call('HSETNX', HEADS, 'p' .. field, place) == 1 then
  count('#b', more)
  count('#k', keys)
end
extend(HEADS, before, TOMBSTONE)
local version = later(STAMP, floor())
if old then version = later(version, old.version) end
if not live then return {'ok', version, '', '0'} end
return {'ok', version, string.format('%.0f', old.expires), old.expiry}
