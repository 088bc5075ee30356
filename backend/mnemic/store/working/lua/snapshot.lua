-- Everything at one moment. Gives {'ok', values, heads, notes by id}; {'gated', gate}.
local shut = gate()
if shut then return {'gated', shut} end
return {'ok', redis.call('HGETALL', VALUES), redis.call('HGETALL', HEADS),
  redis.call('HGETALL', NOTES)}
