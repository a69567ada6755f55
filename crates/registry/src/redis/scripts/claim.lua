-- Decides and carries out a claim: `rule::admit` of `core`, clause by clause, in one atomic step.
--
-- KEYS  7 the bucket's admission ring: see admissions.lua
-- ARGV  2 the origin · 3 the policy's terms, or '' · 4 the TTL while terms are unknown
--       5 owner of a named session: 'h' the holder, 'd' the device · 6 when full: 'd' deny, 'e' evict
--       7 when held: 'r' resume, 's' supersede, 'u' upgrade · 8 the holder, 9 its key
--       10 the user · 11 the tier
--       12 the named session, or '', 13 its key · 14 the session to replace, or '', 15 its key
--       16 the part after the time in a fresh id, with 4 random bytes at the end
--       17 body of a fresh session · 18 particulars · 19 bound of the journal's unacknowledged events
--       20 '1' to return the events: see `with_events` · 21 the reason for the end of a replaced session: SUPERSEDED if
--       its seat is handed over
-- Reply the time, …, live sessions, limit, outcome, and then
--       for a seat: the session, and in turn id and reason of each session that had to end for the claim
--       for a denial: time until a seat can come free, or the time at which the entitlement ended
--       for MAKING_ROOM: nothing; the caller must repeat the claim
--       at the end: the events of the step, if asked for
local origin, told, ttl_default, when_named, when_full, when_held, holder, holder_key, user, tier
local named_id, named_key, replace_id, replace_key
local admitted    -- the session started by the claim

local function read_claim()
  origin, told, ttl_default = ARGV[2], ARGV[3], tonumber(ARGV[4])
  when_named, when_full, when_held = ARGV[5], ARGV[6], ARGV[7]
  holder, holder_key, user, tier = ARGV[8], ARGV[9], ARGV[10], tonumber(ARGV[11])
  named_id, named_key, replace_id, replace_key = ARGV[12], ARGV[13], ARGV[14], ARGV[15]
  -- A caller that names a holder's own session gives the holder alone, so the holder's key is the session's
  -- key.
  if when_named == 'h' then
    named_key = holder_key
  end
  admitted = nil
end

-- Returns whether the claim hands over the seat of the session to replace.
local function is_handing_over()
  return tonumber(ARGV[21]) == SUPERSEDED
end

-- Returns the number of live sessions.
local function live()
  return pool.count - pool.overdue
end

-- Returns the session unless over, and ends a session that is over. After `forget_over` reached ENDS_MAX,
-- overdue sessions remain in the pool.
local function unless_over(s)
  if s and is_over(s) then
    take_out_all({ s })
    pool.overdue = pool.overdue - 1
    return nil
  end
  return s
end

-- Returns the session named by the claim, if the session is live here and belongs to the holder.
local function named_own()
  local s = named_id ~= '' and unless_over(members.by_id(named_id, named_key))
  if not s then
    return nil
  end
  local its_holder = read_body(s).holder
  if when_named == 'h' then
    return its_holder == holder and s or nil
  end
  -- The part of a fingerprint that identifies the device everywhere.
  return its_holder:match('^[^-]*') == holder:match('^[^-]*') and s or nil
end

-- Renews a session for the claim's user. The answer tells the interval of heartbeats to this user alone, so a session
-- with other users keeps a longer TTL.
local function go_on(s)
  local is_alone = read_body(s).users == 1 and has_user(s, user)
  renew(s, math.max(pool.ttl or ttl_default, is_alone and 0 or s.ttl))
  join(s, user)
  return s
end

-- Ends one step's share of sessions if a free seat takes more ends than one step may make. Returns whether
-- the claim must be repeated for that reason. `evicts`: the claim may evict any number of sessions.
local function makes_room(evicts)
  if pool.overdue > 0 and pool.count >= pool.limit then
    -- Overdue sessions hold the seats, and must be on record as ended before the next admission.
    -- `forget_over` has just ended ENDS_MAX of them.
    return true
  end
  if not evicts or live() - pool.limit < EVICTIONS_MAX then
    return false
  end
  take_out_stalest(EVICTIONS_MAX, EVICTED)
  return true
end

local function evict_below_limit()
  while live() >= pool.limit do
    local s = unless_over(members.stalest())
    if s then
      take_out_all({ s }, EVICTED)
    elseif pool.count == 0 then
      return
    end
  end
end

-- Returns the id of a session that starts now. A node that sends a claim again may get both commands carried
-- out in one millisecond. The first step left an event in the journal, so the number of the journal's last
-- event, added to the random part, tells the two sessions apart.
local function fresh_id()
  local given = ARGV[16]
  if is_handing_over() then
    -- The mark of `SessionId::with_handed_over_seat`, in the ninth byte of the id.
    given = given:sub(1, 3) .. string.char(given:byte(4) + 32) .. given:sub(5)
  end
  local random = (struct.unpack('>I4', given, #given - 3) + last) % 4294967296
  local time = struct.pack('>I5B', math.floor(now / 16), now % 16 * 16 + given:byte(1))
  return time .. given:sub(2, -5) .. struct.pack('>I4', random)
end

local function take_seat()
  local id = fresh_id()
  admitted = { id = id, key = holder_key, heartbeat = now, ttl = pool.ttl or ttl_default, body = ARGV[17] }
  insert(admitted)
  return ADMITTED, admitted
end

-- Gives the holder's seat to a new session, if the pool then keeps its limit. A lowered limit requires
-- evictions as well. Without permission to evict, the old session stays, because a holder with a seat is
-- never told "full".
local function swap(held, reason)
  local evicts = when_full == 'e' and told ~= '' and pool.limit > 0
  if live() > pool.limit and not evicts then
    if when_held == 'u' then
      return EXISTING, held
    end
    return RESUMED, go_on(held)
  end
  if makes_room(evicts) then
    return MAKING_ROOM
  end
  take_out_all({ held }, reason)
  evict_below_limit()
  return take_seat()
end

-- Returns the session to replace, if the session is live here.
local function replaceable()
  return replace_id ~= '' and unless_over(members.by_id(replace_id, replace_key)) or nil
end

-- Ends the session to replace if the claim hands over the session's seat. Called while another seat is free.
local function hand_over()
  local handed_over = is_handing_over() and replaceable()
  if handed_over then
    take_out_all({ handed_over }, SUPERSEDED)
  end
end

-- Handles a full pool. Unknown terms never evict.
local function full()
  local replaced = replaceable()
  local one_is_enough = replaced and live() == pool.limit
  if pool.limit == 0 then
    return FULL, NEVER
  end
  if told == '' or not (when_full == 'e' or one_is_enough) then
    -- A lower bound if more sessions have to go first.
    local last_to_go = math.min(pool.count - pool.limit, EVICTIONS_MAX - 1)
    local free_at = math.min(members.silent_at(last_to_go), pool.ends_at)
    return FULL, math.max(0, free_at - now)
  end
  if makes_room(when_full == 'e') then
    return MAKING_ROOM
  end
  if replaced then
    take_out_all({ replaced }, tonumber(ARGV[21]))
  end
  evict_below_limit()
  return take_seat()
end

-- Notes the admitted session in the bucket's admission ring: see admissions.lua. The event of the admission
-- is the journal's last.
local function note_admission(s)
  local entry = struct.pack('>I6c16c0c0', last, s.id, s.key, ARGV[1])
  redis.call('SETRANGE', ADMISSIONS, last % RING_ENTRIES * RING_ENTRY_BYTES, entry)
end

-- Returns `true` if a further session, with the given key, would make a small pool large with a duplicate key. A large
-- pool would lose a session of the duplicate key, and two holders would share a seat.
local function would_merge(key)
  if pool.ttls or pool.count < SMALL_MAX then
    return false
  end
  local keys = { [key] = true }
  for _, s in ipairs(pool.sessions) do
    s.key = s.key or key_of(read_body(s).holder)
    if keys[s.key] then
      return true
    end
    keys[s.key] = true
  end
  return false
end

local function admit()
  -- 1. Forget sessions that are over under the terms in force.
  if told == '' then
    forget_over()
  elseif not revise(told) then
    return MAKING_ROOM
  end
  if pool.closed then
    return CLOSED, 0
  end
  if pool.ends_at <= now then
    return OVER, pool.ends_at
  end
  -- 2. The holder named its own session.
  local own = named_own()
  if own then
    return REFRESHED, go_on(own)
  end
  -- 3. The holder has a session.
  local held = unless_over(members.by_holder(holder, holder_key))
  if held and read_body(held).holder ~= holder then
    -- Two holders have one key: a deliberate hash collision wins no seat, here and in `would_merge`.
    return FULL, NEVER
  end
  if held and when_held == 'r' then
    return RESUMED, go_on(held)
  end
  if held and when_held == 's' then
    return swap(held, SUPERSEDED)
  end
  if held and held.tier < tier then
    return swap(held, UPGRADED)
  end
  if held then
    return EXISTING, held
  end
  -- 4. A seat is free.
  if live() < pool.limit then
    if makes_room(false) then
      return MAKING_ROOM
    end
    if would_merge(holder_key) then
      return FULL, NEVER
    end
    hand_over()
    return take_seat()
  end
  -- 5. The pool is full.
  return full()
end

local function step()
  read_claim()
  local waiting = last - acknowledged
  if waiting >= tonumber(ARGV[19]) then
    return { JOURNAL_FULL, waiting }
  end
  if not load_pool() then
    return { NOT_OPEN }
  end
  find_members()
  if members.needs_key(named_id, named_key) or members.needs_key(replace_id, replace_key) then
    return { KEY_NEEDED }
  end
  -- With known, unchanged terms and a session in the pool, one more session is due no earlier than the pool.
  local is_due_in_time = pool.count > 0 and pool.terms ~= '' and (told == '' or told == pool.terms)

  local outcome, found = admit()
  record_ends(origin, admitted and 1 or 0)
  local answer
  if outcome == MAKING_ROOM then
    answer = reply(live(), pool.limit, MAKING_ROOM)
  elseif outcome >= FULL then
    local due_before = denials_due()
    denials_of_pool().add(holder, outcome, found, origin)
    is_due_in_time = is_due_in_time and denials_due() == due_before
    answer = reply(live(), pool.limit, outcome, found)
  else
    if admitted then
      local s = admitted
      record_event(BEGAN, pool.count, origin,
        struct.pack('>c16I5I6Hc0', s.id, s.ttl, expiry_of(s), #s.body, s.body) .. ARGV[18])
      note_admission(s)
    end
    answer = reply(live(), pool.limit, outcome, shown(found))
    for _, ending in ipairs(pool.ended) do
      if ending.reason ~= EXPIRED then
        answer[#answer + 1] = ending.session.id
        answer[#answer + 1] = ending.reason
      end
    end
  end
  save_pool()
  if not is_due_in_time or pool.count == 0 or pool.overdue > 0 then
    keep_due()
  end
  keep_head()
  return with_events(answer, ARGV[20])
end
