-- Says what PostgreSQL has: marks of durable values, or tombstones. ARGV: 10 how many, then for
-- each: field, version, expires, expiry, state ('d', 'x', or '' to give up a reserved place), size.
-- Gives for each 'ok', or 'newer' when a later value stands here; {'gated', gate} first of all.
local shut = gate()
if shut then return {'gated', shut} end
local answers, low = {}, floor()
for place = 0, tonumber(ARGV[10]) - 1 do
  local base = 11 + place * 6
  local field, version, state = ARGV[base], ARGV[base + 1], ARGV[base + 4]
  local reserved = redis.call('HGET', HEADS, 'p' .. field)
  if reserved then
    local size, _, keys, id = reserved:match('^(%d+):(%d+):(%d+):(%x+)$')
    if id == ID then
      redis.call('HDEL', HEADS, 'p' .. field)
      count('#b', -tonumber(size))
      count('#k', -tonumber(keys))
    end
  end
  local old = head_of(field)
  answers[#answers + 1] = 'ok'
  -- A mark only says whom to ask, so that it may stand even where others have emptied the scope.
  if state == 'd' and version <= low then version = later(version, low) end
  if state == '' or version <= low or (old and old.version == version) then
    -- given up, cleared since, or said before
  elseif old and old.version > version then
    if is_live(old) and old.state == 'v' then answers[#answers] = 'newer' end
  else
    local size = tonumber(ARGV[base + 5])
    local new = {
      version = version, id = version .. ZERO, expires = tonumber(ARGV[base + 2]),
      expiry = ARGV[base + 3], state = state, size = state == 'd' and size or 0,
    }
    if state == 'd' then put_value(field, new, '') else redis.call('HDEL', VALUES, field) end
    put_head(field, new)
    count_change(field, old, state == 'd' and size or nil)
  end
end
return {'ok', answers}
