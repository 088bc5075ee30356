-- Deletes an entry. ARGV: 10 field.
-- Gives {'ok', 1 or 0}; {'durable', version} when PostgreSQL has it and must be asked;
-- {'gated', gate}.
local field = ARGV[10]
local shut = gate()
if shut then return {'gated', shut} end
local old = head_of(field)
if old and old.id == ID then return {'ok', 1} end
if not is_live(old) then return {'ok', 0} end
if old.state == 'd' then return {'durable', old.version} end
redis.call('HDEL', VALUES, field)
put_head(field, {
  version = later(later(STAMP, floor()), old.version), id = ID, expires = 0, expiry = '0',
  state = 'x', size = 0,
})
count_change(field, old, nil)
if redis.call('HLEN', HEADS) > KEYS_MAX + 2 * DEAD_MAX then recount() end
return {'ok', 1}
