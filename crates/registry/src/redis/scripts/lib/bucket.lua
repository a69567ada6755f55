-- The bucket that a script works in: its head, its clock, its journal. Each script begins with this.
--
-- KEYS  1 head, 2 due-index, 3 journal of the bucket; for scripts on a pool also
--       4 pool, 5 sessions, 6 order of it (see pool.lua)
-- ARGV  the last: the stamp, which is what the head must begin with, so that the bucket is served in the epoch and
--       on the server that the caller knows
--
-- The head is the stamp and then: the clock's high-water mark, the number of the journal's last event, and how
-- many events are acknowledged (6 bytes each). The stamp is: format (1 byte), state (1), epoch (6), identity of the
-- server. A reply is an array. Its first number is the time, or a negative one that says why there is no answer.
local call, pack, parse, floor = redis.call, struct.pack, struct.unpack, math.floor
local HEAD, DUE, JOURNAL, POOL, SESSIONS, ORDER = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local STAMP = ARGV[#ARGV]

local head = call('GET', HEAD)
if not head or head:sub(1, -19) ~= STAMP then
  return { NOT_SERVING }
end
local EPOCH = parse('>I6', STAMP, 3)
local mark, last, acknowledged = parse('>I6I6I6', head, #STAMP + 1)

-- One clock decides: this server's, which is never seen to go back.
local time = call('TIME')
local clock = time[1] * 1000 + floor(time[2] / 1000)
local now = math.max(clock, mark)

-- Puts one event into the journal.
local last_before = last
local function record(event)
  last = last + 1
  call('XADD', JOURNAL, EPOCH .. '-' .. last, 'e', event)
end

-- Writes the head, if a later step must know of this one: always if something is on record, else now and then,
-- for what a renewal of some milliseconds ago was told is not worth a write each time.
local function keep_head()
  if last > last_before or now - mark >= MARK_LAG_MS then
    call('SET', HEAD, STAMP .. pack('>I6I6I6', now, last, acknowledged))
  end
end

-- How every reply begins: the time, how far the clock is behind it, the number of the journal's last event, and
-- how many events are acknowledged.
local function reply(...)
  return { now, now - clock, last, acknowledged, ... }
end
