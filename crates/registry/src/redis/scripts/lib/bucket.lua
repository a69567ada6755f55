-- The bucket that a step works in: its head, its clock, its journal. Every script on a served bucket begins so.
--
-- A script may be called for several at once: the step that it is (`step`, in the file that it is named after) is taken
-- for each in turn, as if each had called it alone: see lib/each.lua, which every such script ends with. So KEYS and ARGV
-- are from here on those of one call, what a step knows is in variables that it begins anew, and functions are made
-- once for all of them, for making them costs time.
--
-- Names in capitals are numbers and keys that this side and the node agree upon: see scripts.rs.
-- KEYS  1 HEAD, 2 DUE (the due-index), 3 JOURNAL of the bucket; for scripts on a pool also
--       4 POOL, 5 SESSIONS, 6 ORDER of it: see pool.lua
-- ARGV  the last: the stamp, which is what the head must begin with, so that the bucket is served in the epoch and
--       on the server that the caller knows
--
-- The head is the stamp and then five numbers of 6 bytes each: the clock's high-water mark, the number of the
-- journal's last event, how many events are acknowledged, a lower bound of the first score in DUE, and the time at
-- which the bucket's lease is over. The stamp is: format (1 byte), stage (1), epoch (6), identity of the server. A reply
-- is an array. Its first number is the time, or a negative one that says why there is no answer.
--
-- Lease: nodes that serve clients renew it. A clock that reads more than the lease says that nobody could renew a session
-- for a while, or that the clock jumped. Either way no step may end a session: the bucket is rebuilt first.
local all_keys, all_args = KEYS, ARGV
local KEYS, ARGV
local stamp, mark, last, acknowledged, due, leased_until, now, must_keep_head
local epoch       -- that of the stamp, once it is needed
local recorded    -- the events of the step

-- One clock decides: this server's.
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)

-- Begins a step; false if the bucket is not served so.
local function enter()
  stamp = ARGV[#ARGV]
  local head = redis.call('GET', HEAD)
  if not head or head:sub(1, -HEAD_NUMBERS_BYTES - 1) ~= stamp then
    return false
  end
  mark, last, acknowledged, due, leased_until = struct.unpack('>I6I6I6I6I6', head, #stamp + 1)
  if clock > leased_until then
    return false
  end
  -- The clock is never seen to go back.
  now = math.max(clock, mark)
  must_keep_head = now - mark >= MARK_LAG_MS
  epoch, recorded = nil, {}
  return true
end

-- The id in the journal of an entry whose last event has this number.
local function journal_id(number)
  epoch = epoch or struct.unpack('>I6', stamp, 3)
  -- `..` takes much longer, and has no more than 14 digits.
  return string.format('%d-%d', epoch, number)
end

-- Takes down one event of the step.
local function record(event)
  last, must_keep_head = last + 1, true
  recorded[#recorded + 1] = event
end

-- Puts the events of the step into the journal. An entry is some of them: see journal_id.
local function write_events()
  local before = last - #recorded
  for from = 1, #recorded, ENTRY_EVENTS_MAX do
    local to, fields = math.min(from + ENTRY_EVENTS_MAX - 1, #recorded), {}
    for i = from, to do
      fields[#fields + 1] = 'e'
      fields[#fields + 1] = recorded[i]
    end
    redis.call('XADD', JOURNAL, journal_id(before + to), unpack(fields))
  end
end

-- The events of the step, so that the node need not read them from the journal; none if they are many. After it nothing
-- may be recorded, for the last of them is taken for the journal's last.
local function events_to_tell()
  return #recorded <= EVENTS_TOLD_MAX and recorded or {}
end

-- Keeps the bound of DUE: a score was written that may be the first.
local function note_due(score)
  if score < due then
    due, must_keep_head = score, true
  end
end

-- Writes the head, if a later step must know of this one: always if something is on record, else now and then,
-- for what a renewal of some milliseconds ago was told is not worth a write each time.
local function keep_head()
  if must_keep_head then
    redis.call('SET', HEAD, stamp .. struct.pack('>I6I6I6I6I6', now, last, acknowledged, due, leased_until))
  end
end

-- How every reply begins: the time, how far the clock is behind it, the number of the journal's last event, and
-- how many events are acknowledged.
local function reply(...)
  return { now, now - clock, last, acknowledged, ... }
end
