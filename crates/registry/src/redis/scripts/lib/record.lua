-- What happens in the pool becomes events, numbered without a gap. Follows members.lua.
--
-- An event is: kind (1 byte), number (6), time (6), how many are live after it (4), the limit in force (4), the
-- version of the terms that gave it (8), the pool and what caused it (2 bytes of length each), and the rest by kind.
-- The epoch and its place in the journal follow from the id of its entry there: see write_events.
--
-- pool.ended: the sessions that ended in this step, with reason and expiry.
local function record_event(kind, live, origin, rest)
  pool.seq = pool.seq + 1
  local version = pool.terms == '' and NO_VERSION or pool.terms
  record(struct.pack('>BI6I6I4I4c8Hc0Hc0', kind, pool.seq, now, live, pool.limit, version,
    #pool.id, pool.id, #origin, origin) .. rest)
  pool.last_event, pool.changed = last, true
end

-- What a session is over for.
local function over_for(s)
  return expiry_of(s) <= now and EXPIRED or ENTITLEMENT_ENDED
end

-- Ends sessions for a reason, or for what they are over for. record_ends must follow.
local function take_out_all(gone, reason)
  local ended = pool.ended
  for _, s in ipairs(gone) do
    ended[#ended + 1] = { session = s, reason = reason or over_for(s), expires = expiry_of(s) }
  end
  remove_all(gone)
end

-- Records the sessions that ended. Newcomers came after them and are in already. What time ends is nobody's doing.
local function record_ends(origin, newcomers)
  local ended = pool.ended
  for i, ending in ipairs(ended) do
    local s = read_body(ending.session)
    local rest = struct.pack('>c16BI6I6Bc0', s.id, ending.reason, s.heartbeat, ending.expires, s.tier, s.holder)
    local cause = ending.reason == EXPIRED and '' or origin
    record_event(ENDED, pool.count - newcomers + #ended - i, cause, rest)
  end
end
