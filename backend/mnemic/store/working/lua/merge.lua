-- Brings in what a process held while it could not reach us; the newer version wins.
-- ARGV: 10 how long ago that began (ms), 11 the oldest version that may come back when nothing is
-- known of its field, 12 how many entries, then for each: field, id, expires, expiry, state, JSON
-- and the versions and ids that the process knew there; then how many notes, then for each: id,
-- text.
-- Gives {'ok', an answer each}: 'kept'; 'won' or 'lost' when another wrote meanwhile;
-- {'gated', gate}.
local shut = gate()
if shut then return {'gated', shut} end
local MARGIN = 1000
local since = server_ms() - tonumber(ARGV[10]) - MARGIN
local oldest, entries, answers = ARGV[11], tonumber(ARGV[12]), {}
local low = floor()
for place = 0, entries - 1 do
  local base = 13 + place * 7
  local field, id, body, known = ARGV[base], ARGV[base + 1], ARGV[base + 5], ARGV[base + 6]
  local stamp = id:sub(1, 16)
  local old, answer = head_of(field), 'kept'
  local foreign = old and old.at >= since and not known:find(old.version, 1, true)
    and not known:find(old.id, 1, true)
  if old and old.id == id then
    -- it had arrived, only the answer was lost
  elseif old and old.version >= stamp then
    answer = 'lost'
  elseif not old and (stamp <= low or stamp < oldest) then
    answer = 'lost'
  else
    if foreign then answer = 'won' end
    local new = {
      version = stamp, id = id, expires = tonumber(ARGV[base + 2]), expiry = ARGV[base + 3],
      state = ARGV[base + 4], size = #field - 1 + #body,
    }
    if new.expiry == '1' and is_live(old) and old.expiry ~= '1' then
      new.expires, new.expiry = old.expires, old.expiry  -- an update that did not say keeps it
    end
    if is_live(new) then
      put_value(field, new, body)
      count_change(field, old, new.size)
    else
      redis.call('HDEL', VALUES, field)
      count_change(field, old, nil)
      new.state, new.size = 'x', 0
    end
    put_head(field, new)
  end
  answers[#answers + 1] = answer
end
drop_expired_notes()
local cleared = (redis.call('HGET', HEADS, '#c') or ZERO):sub(1, 16)
local base = 13 + entries * 7
for place = 0, tonumber(ARGV[base]) - 1 do
  local id, text = ARGV[base + 1 + place * 2], ARGV[base + 2 + place * 2]
  if id:sub(1, 16) <= cleared then
    answers[#answers + 1] = 'lost'
  else
    put_note(id, text)
    answers[#answers + 1] = 'kept'
  end
end
return {'ok', answers}
