-- Shuts the scope while it is being restored. ARGV: 10 gate.
-- Gives {'ok', values, heads, notes by id, version later than all here}; {'gated', gate} when
-- another has shut it.
local shut = gate()
if shut and shut ~= ARGV[10] then return {'gated', shut} end
local values, heads = redis.call('HGETALL', VALUES), redis.call('HGETALL', HEADS)
local before_values, before_heads = redis.call('PTTL', VALUES), redis.call('PTTL', HEADS)
redis.call('HSET', VALUES, 'g', ARGV[10])
redis.call('HSET', HEADS, '#g', ARGV[10])
extend(VALUES, before_values, TOMBSTONE)
extend(HEADS, before_heads, TOMBSTONE)
return {'ok', values, heads, redis.call('HGETALL', NOTES),
  latest()}
