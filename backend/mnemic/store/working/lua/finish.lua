-- Opens the scope again. ARGV: 10 gate, 11 the version of what it now holds, '' if nothing changed;
-- 12 how many entries, then for each: field, expires, expiry, state, size, JSON; then how many
-- notes, then for each: id, text.
-- Gives {'ok'}; {'late'} when the gate is another's or gone.
if gate() ~= ARGV[10] then return {'late'} end
redis.call('HDEL', VALUES, 'g')
redis.call('HDEL', HEADS, '#g')
if ARGV[11] == '' then return {'ok'} end
local version, entries = ARGV[11], tonumber(ARGV[12])
redis.call('DEL', VALUES, NOTES, HEADS)
redis.call('HSET', HEADS, '#f', version, '#c', version .. ZERO .. '0')
extend(HEADS, -2, TOMBSTONE)
for place = 0, entries - 1 do
  local base = 13 + place * 6
  local field, body = ARGV[base], ARGV[base + 5]
  local new = {
    version = version, id = version .. ZERO, expires = tonumber(ARGV[base + 1]),
    expiry = ARGV[base + 2], state = ARGV[base + 3],
    size = tonumber(ARGV[base + 4]),
  }
  put_value(field, new, body)
  put_head(field, new)
  count_change(field, nil, new.size)
end
local base = 13 + entries * 6
for place = 0, tonumber(ARGV[base]) - 1 do
  put_note(ARGV[base + 1 + place * 2], ARGV[base + 2 + place * 2])
end
return {'ok'}
