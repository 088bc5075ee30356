-- Empties the scope. Gives {'ok', keys whose values were here}; {'gated', gate}.
local shut = gate()
if shut then return {'gated', shut} end
local done = redis.call('HGET', HEADS, '#c')
if done and done:sub(1, 32) == ID then return {'ok', tonumber(done:sub(33))} end
local keys, low = 0, latest()
for _, field in ipairs(redis.call('HKEYS', HEADS)) do
  if is_key(field) then
    local head = head_of(field)
    if is_live(head) and head.state == 'v' then keys = keys + 1 end
  end
end
redis.call('DEL', VALUES, NOTES, HEADS)
redis.call('HSET', HEADS, '#f', low, '#c', ID .. string.format('%.0f', keys))
extend(HEADS, -2, TOMBSTONE)
return {'ok', keys}
