-- Keeps a value. ARGV: 10 field, 11 time to live ('' as it is, 'f' for ever, else ms),
-- 12 '1' if it must not be durable, 13 JSON.
-- Gives {'ok', version, expires, expiry, '1' if it was durable}; {'durable', version} when
-- PostgreSQL has it and must be asked; {'full', what}; {'gated', gate}.
local field, ttl, body = ARGV[10], ARGV[11], ARGV[13]
local shut = gate()
if shut then return {'gated', shut} end
local old = head_of(field)
if old and old.id == ID then
  return {'ok', old.version, string.format('%.0f', old.expires), old.expiry, '0'}
end
local live = is_live(old)
local durable = live and old.state == 'd'
if durable and ARGV[12] ~= '1' then return {'durable', old.version} end
local size = #field - 1 + #body
local what = exceeded(field, old, size)
if what then return {'full', what} end
old = head_of(field)  -- the recount may have buried it
local new = {id = ID, state = 'v', size = size}
new.version = later(STAMP, floor())
if old then new.version = later(new.version, old.version) end
if ttl == 'f' then
  new.expires, new.expiry = 0, '0'
elseif ttl ~= '' then
  new.expires, new.expiry = NOW + tonumber(ttl), '2'
elseif not live then
  new.expires, new.expiry = NOW + DEFAULT_TTL, '1'
elseif old.expiry == '1' then
  new.expires, new.expiry = math.max(old.expires, NOW + DEFAULT_TTL), '1'
else
  new.expires, new.expiry = old.expires, old.expiry
end
put_value(field, new, body)
put_head(field, new)
count_change(field, old, size)
return {'ok', new.version, string.format('%.0f', new.expires), new.expiry, durable and '1' or '0'}
