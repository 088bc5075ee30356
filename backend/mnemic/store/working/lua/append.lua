-- Adds a note at the end. ARGV: 10 text.
-- Gives {'ok'}; {'full', what}; {'gated', gate}.
local text = ARGV[10]
local shut = gate()
if shut then return {'gated', shut} end
drop_expired_notes()
if redis.call('HEXISTS', NOTES, ID) == 1 then return {'ok'} end
if redis.call('HLEN', NOTES) >= NOTES_MAX then return {'full', 'notes'} end
if counted('#b') + counted('#n') + #text > BYTES_MAX then
  local _, bytes = recount()
  if bytes + counted('#n') + #text > BYTES_MAX then return {'full', 'bytes'} end
end
put_note(ID, text)
return {'ok'}
