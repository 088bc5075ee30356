-- What every script of working memory begins with.
--
-- KEYS: values, heads, notes of one scope.
-- ARGV: 1 id, 2 now (ms), 3 fields can expire, 4 keys may expire, 5 life of a tombstone (ms),
--       6 keys_max, 7 bytes_max, 8 notes_max, 9 default time to live (ms); then the script's own.
--
-- A version is 16 hexadecimal digits, so that text order is number order. The id of a call is its
-- stamp, which is such a version, and 16 digits of its process: a call that comes again is known
-- by it. A head is version, id, expires (14 digits, 0 for never), expiry (0 never, 1 default,
-- 2 given), state (v value, d durable, x deleted), the server's time of writing (14 digits) and the
-- size. A value is version, expires, expiry and state as in its head, then JSON; nothing follows
-- when PostgreSQL has it. Heads outlive their values: they keep older values from coming back.
-- In the hash of heads `#k` counts keys and `#b` their bytes (never too few: what has expired is
-- only counted out when a limit is met), `#f` is the version below which what is absent was
-- deleted, `#n` bytes of notes, `#s` their last number, `#x` when they expire, `#c` the last clear,
-- `#g` the gate; `p` and a field is a place reserved for a value on its way to PostgreSQL.

local VALUES, HEADS, NOTES = KEYS[1], KEYS[2], KEYS[3]
local ID, STAMP, NOW = ARGV[1], ARGV[1]:sub(1, 16), tonumber(ARGV[2])
local NATIVE, KEY_TTL, TOMBSTONE = ARGV[3] == '1', ARGV[4] == '1', tonumber(ARGV[5])
local KEYS_MAX, BYTES_MAX, NOTES_MAX = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local DEFAULT_TTL = tonumber(ARGV[9])
local DEAD_MAX, RESERVED_MS, ZERO = 1000, 30000, '0000000000000000'

local function server_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function head_of(field)
  local raw = redis.call('HGET', HEADS, field)
  if not raw then return nil end
  return {
    version = raw:sub(1, 16), id = raw:sub(17, 48), expires = tonumber(raw:sub(49, 62)),
    expiry = raw:sub(63, 63), state = raw:sub(64, 64), at = tonumber(raw:sub(65, 78)),
    size = tonumber(raw:sub(79)),
  }
end

local function is_live(head)
  return head ~= nil and head.state ~= 'x' and (head.expires == 0 or head.expires > NOW)
end

-- A version later than both; versions differ by 1,024 at least, the bits of the process.
local function later(stamp, known)
  if stamp > known then return stamp end
  local high, low = tonumber(known:sub(1, 8), 16), tonumber(known:sub(9), 16) + 1024
  if low >= 4294967296 then high, low = high + 1, low - 4294967296 end
  return string.format('%08x%08x', high, low)
end

local function floor()
  return redis.call('HGET', HEADS, '#f') or ZERO
end

-- A whole hash lives as long as its longest member.
local function extend(key, before, ms)
  if not KEY_TTL then return end
  if ms == nil then
    redis.call('PERSIST', key)
  elseif before == -2 or (before >= 0 and before < ms) then
    redis.call('PEXPIRE', key, string.format('%.0f', ms))
  end
end

local function left(expires)
  if expires == 0 then return nil end
  return math.max(1, expires - NOW)
end

local function expire_field(key, field, ms)
  if not NATIVE then return end
  if ms == nil then
    redis.call('HPERSIST', key, 'FIELDS', 1, field)
  else
    redis.call('HPEXPIRE', key, string.format('%.0f', ms), 'FIELDS', 1, field)
  end
end

local function put_head(field, head)
  local ms
  if head.state == 'x' then ms = TOMBSTONE else ms = left(head.expires) end
  if ms ~= nil and head.state ~= 'x' then ms = ms + TOMBSTONE end
  local before = redis.call('PTTL', HEADS)
  redis.call('HSET', HEADS, field, string.format('%s%s%014.0f%s%s%014.0f%.0f', head.version,
    head.id, head.expires, head.expiry, head.state, head.at or server_ms(), head.size))
  expire_field(HEADS, field, ms)
  extend(HEADS, before, ms)
end

local function put_value(field, head, body)
  local before, ms = redis.call('PTTL', VALUES), left(head.expires)
  redis.call('HSET', VALUES, field, string.format('%s%014.0f%s%s', head.version, head.expires,
    head.expiry, head.state) .. body)
  expire_field(VALUES, field, ms)
  extend(VALUES, before, ms)
end

local function count(name, by)
  if by ~= 0 then redis.call('HINCRBY', HEADS, name, string.format('%.0f', by)) end
end

local function is_key(field)
  return field:sub(1, 1) == 'k'
end

-- An entry that took part in the counters no longer does, or does so with another size.
local function count_change(field, old, size)
  local had = old ~= nil and old.state ~= 'x' and old.size or 0
  local was = old ~= nil and old.state ~= 'x'
  count('#b', (size or 0) - had)
  if is_key(field) then count('#k', (size and 1 or 0) - (was and 1 or 0)) end
end

-- Heads without a value beyond the newest are forgotten; what they said, the floor says for all.
local function forget_dead(dead)
  if #dead <= DEAD_MAX then return end
  table.sort(dead, function(a, b) return a[1] < b[1] end)
  local forgotten = #dead - math.floor(DEAD_MAX / 2)
  local low = floor()
  for place = 1, forgotten do
    redis.call('HDEL', HEADS, dead[place][2])
    if dead[place][1] > low then low = dead[place][1] end
  end
  redis.call('HSET', HEADS, '#f', low)
end

-- The counters are made exact: values that have expired are removed, and counted no more.
local function recount()
  local keys, bytes, dead = 0, 0, {}
  for _, field in ipairs(redis.call('HKEYS', HEADS)) do
    local kind = field:sub(1, 1)
    if kind == 'k' or kind == 't' then
      local head = head_of(field)
      if is_live(head) then
        bytes = bytes + head.size
        if kind == 'k' then keys = keys + 1 end
      elseif head then
        redis.call('HDEL', VALUES, field)
        dead[#dead + 1] = {head.version, field}
        if head.state ~= 'x' then
          head.state, head.size = 'x', 0
          put_head(field, head)
        end
      end
    elseif kind == 'p' then
      local size, ends, places = redis.call('HGET', HEADS, field):match('^(%d+):(%d+):(%d+)')
      if tonumber(ends) > NOW then
        bytes, keys = bytes + tonumber(size), keys + tonumber(places)
      else
        redis.call('HDEL', HEADS, field)
      end
    end
  end
  if redis.call('EXISTS', HEADS) == 1 then
    redis.call('HSET', HEADS, '#k', string.format('%.0f', keys), '#b', string.format('%.0f', bytes))
    forget_dead(dead)
  end
  return keys, bytes
end

local function counted(name)
  return tonumber(redis.call('HGET', HEADS, name) or '0')
end

-- What would be exceeded if `field`, now `old`, became `size` bytes long.
local function exceeded(field, old, size)
  local live = is_live(old)
  local more_keys = (is_key(field) and not live) and 1 or 0
  local more = size - (live and old.size or 0)
  local keys, bytes, notes = counted('#k'), counted('#b'), counted('#n')
  if (more_keys > 0 and keys + more_keys > KEYS_MAX)
      or (more > 0 and bytes + notes + more > BYTES_MAX) then
    keys, bytes = recount()
  end
  if more_keys > 0 and keys + more_keys > KEYS_MAX then return 'keys' end
  if more > 0 and bytes + notes + more > BYTES_MAX then return 'bytes' end
  return nil
end

-- A version later than everything that was ever here.
local function latest()
  local low = later(STAMP, floor())
  for _, field in ipairs(redis.call('HKEYS', HEADS)) do
    local kind = field:sub(1, 1)
    if kind == 'k' or kind == 't' then
      local head = head_of(field)
      if head then low = later(low, head.version) end
    end
  end
  return low
end

local function gate()
  return redis.call('HGET', VALUES, 'g')
end

-- Notes expire as a whole; the next one then begins anew.
local function drop_expired_notes()
  local ends = tonumber(redis.call('HGET', HEADS, '#x') or '0')
  if ends > 0 and ends <= NOW then
    redis.call('DEL', NOTES)
    redis.call('HDEL', HEADS, '#n', '#x')
  end
end

local function put_note(id, text)
  if redis.call('HEXISTS', NOTES, id) == 1 then return end
  local before_notes, before_heads = redis.call('PTTL', NOTES), redis.call('PTTL', HEADS)
  local number = redis.call('HINCRBY', HEADS, '#s', 1)
  redis.call('HSET', NOTES, id, string.format('%012d', number) .. text)
  count('#n', #text)
  local ends = math.max(tonumber(redis.call('HGET', HEADS, '#x') or '0'), NOW + DEFAULT_TTL)
  redis.call('HSET', HEADS, '#x', string.format('%.0f', ends))
  extend(NOTES, before_notes, ends - NOW)
  extend(HEADS, before_heads, ends - NOW + TOMBSTONE)
end
