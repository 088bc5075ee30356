-- Gives {'ok', notes expire at, notes by id}; {'gated', gate}.
local shut = gate()
if shut then return {'gated', shut} end
return {'ok', redis.call('HGET', HEADS, '#x') or '0', redis.call('HGETALL', NOTES)}
