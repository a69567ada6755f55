-- What happens in the pool becomes events, numbered without a gap. Follows change.lua.
--
-- An event is: kind (1 byte), number (6), time (6), how many are live after it (4), the limit in force (4), the
-- version of the terms that gave it (8), the pool and what caused it (2 bytes of length each), and the rest by kind.
-- The epoch and its place in the journal are its id there.
local ended = {}    -- sessions that ended in this step, with reason and expiry

local function record_event(kind, live, origin, rest)
  seq = seq + 1
  record(pack('>BI6I6I4I4', kind, seq, now, live, limit) .. (terms == '' and NO_VERSION or terms:sub(1, 8))
    .. pack('>Hc0Hc0', #pool_id, pool_id, #origin, origin) .. rest)
  last_event, changed = last, true
end

-- Ends sessions for a reason, or for what they are over for. record_ends must follow.
local function take_out_all(gone, reason)
  for _, s in ipairs(gone) do
    ended[#ended + 1] = { session = s, reason = reason or over_for(s), expires = expiry_of(s) }
  end
  remove_all(gone)
end

local function take_out(s, reason)
  take_out_all({ s }, reason)
end

-- Records the sessions that ended. Newcomers came after them and are in already. What time ends is nobody's doing.
local function record_ends(origin, newcomers)
  for i, ending in ipairs(ended) do
    local s = read_body(ending.session)
    local rest = pack('>c16BI6I6B', s.id, ending.reason, s.heartbeat, ending.expires, s.tier) .. s.holder
    record_event(ENDED, count - newcomers + #ended - i, ending.reason == EXPIRED and '' or origin, rest)
  end
end
