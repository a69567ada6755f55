-- The bucket of a step: head, clock and journal. Every script on a served bucket begins with this file.
--
-- A command may batch several calls of one script. `step`, in the file named after the script, runs for each
-- call in turn, with the effect of separate commands (`lib/each.lua`, the last file of every such script).
-- Hence `KEYS` and `ARGV` below belong to the current call, `enter` resets the variables of a step, and
-- functions are made once per command, because making them costs time.
--
-- Names in capitals are numbers and keys shared with the node: see `scripts.rs`.
-- KEYS  1 HEAD, 2 DUE (the due-index), 3 JOURNAL of the bucket; scripts on a pool also have
--       4 POOL, 5 SESSIONS, 6 ORDER of the pool: see pool.lua; a claim has 7 ADMISSIONS of the bucket
-- ARGV  last: the stamp that the caller expects at the start of the head. An equal stamp proves that the
--       bucket is served, in the caller's epoch and on the caller's server
--
-- The head is the stamp, followed by five numbers of 6 bytes each: the clock's high-water mark, the number of
-- the journal's last event, the number of acknowledged events, a lower bound of the first score in DUE, and
-- the end of the bucket's lease. The stamp is: format (1 byte), stage (1), epoch (6), identity of the server.
-- A reply is an array. The first number is the time; a negative number gives the reason for a refusal.
--
-- Lease: nodes that serve clients renew the bucket's lease. A clock past the lease means that nobody could
-- renew a session for a while, or that the clock jumped. In either case no step may end a session: the bucket
-- is rebuilt first.
local all_keys, all_args = KEYS, ARGV
local KEYS, ARGV
local stamp, mark, last, acknowledged, due, leased_until, now, must_keep_head
local epoch       -- the stamp's epoch, once needed
local recorded    -- events of the step

-- The server's clock alone decides.
local time = redis.call('TIME')
local clock = time[1] * 1000 + math.floor(time[2] / 1000)

-- Begins a step. Returns false unless the bucket is served under the caller's stamp, within the lease.
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
  -- The time of a bucket never goes back.
  now = math.max(clock, mark)
  must_keep_head = now - mark >= MARK_LAG_MS
  epoch, recorded = nil, {}
  return true
end

-- Returns the stream id of the journal entry whose last event has the given number.
local function journal_id(number)
  epoch = epoch or struct.unpack('>I6', stamp, 3)
  -- `..` takes much longer, and formats at most 14 digits.
  return string.format('%d-%d', epoch, number)
end

-- Appends an event to the events of the step.
local function record(event)
  last, must_keep_head = last + 1, true
  recorded[#recorded + 1] = event
end

-- Writes the events of the step to the journal, up to ENTRY_EVENTS_MAX per stream entry: see `journal_id`.
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

-- Lowers the bound of DUE to a score that was just written, if the score may be the first.
local function note_due(score)
  if score < due then
    due, must_keep_head = score, true
  end
end

-- Writes the head if a later step must know of this step: always after an event, otherwise only once the
-- clock is MARK_LAG_MS past the mark, because a renewal alone is not worth a write each time.
local function keep_head()
  if must_keep_head then
    redis.call('SET', HEAD, stamp .. struct.pack('>I6I6I6I6I6', now, last, acknowledged, due, leased_until))
  end
end

-- Builds a reply, which starts with the time, the clock's lag behind the time, the number of the journal's
-- last event, and the number of acknowledged events.
local function reply(...)
  return { now, now - clock, last, acknowledged, ... }
end
