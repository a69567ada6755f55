-- Encodes changes of a pool as events, numbered without a gap. Follows members.lua.
--
-- An event is: kind (1 byte), number (6), time (6), live sessions after the event (4), the limit in force
-- (4), the version of the limit's terms (8), pool and origin (2 bytes of length each), and the rest by kind.
-- Epoch and journal position follow from the id of the stream entry: see `write_events`.
--
-- `pool.ended`: the sessions that ended in this step, with reason and expiry.
local function record_event(kind, live, origin, rest)
  pool.seq = pool.seq + 1
  local version = pool.terms == '' and NO_VERSION or pool.terms
  record(struct.pack('>BI6I6I4I4c8Hc0Hc0', kind, pool.seq, now, live, pool.limit, version,
    #pool.id, pool.id, #origin, origin) .. rest)
  pool.last_event, pool.changed = last, true
end

-- Appends the events of the step to an answer as an array, if `wanted` is '1'. The caller then need not read them
-- from the journal. A step with more than ENTRY_EVENTS_MAX events appends nothing.
local function with_events(answer, wanted)
  if wanted == '1' and #recorded > 0 and #recorded <= ENTRY_EVENTS_MAX then
    answer[#answer + 1] = recorded
  end
  return answer
end

-- Returns the reason for the end of a session that is over.
local function over_for(s)
  return expiry_of(s) <= now and EXPIRED or ENTITLEMENT_ENDED
end

-- Ends sessions for a reason, by default for the reason why each is over. The step must call `record_ends`
-- later.
local function take_out_all(gone, reason)
  local ended = pool.ended
  for _, s in ipairs(gone) do
    ended[#ended + 1] = { session = s, reason = reason or over_for(s), expires = expiry_of(s) }
  end
  remove_all(gone)
end

-- Records the ended sessions. The counts of live sessions leave out newcomers, already in the pool but
-- admitted after the ends. An expiry has no origin.
local function record_ends(origin, newcomers)
  local ended = pool.ended
  for i, ending in ipairs(ended) do
    local s = read_body(ending.session)
    local rest = struct.pack('>c16BI6I6Bc0', s.id, ending.reason, s.heartbeat, ending.expires, s.tier, s.holder)
    local cause = ending.reason == EXPIRED and '' or origin
    record_event(ENDED, pool.count - newcomers + #ended - i, cause, rest)
  end
end
