-- What core's rule does to a pool, beside admitting. Follows due.lua.
--
-- One step ends about ENDS_MAX sessions at most, for nobody else is served meanwhile. What is over, and was too much
-- to be ended, takes no seat (see `overdue`), and the sweeper comes for it at once.

-- Sessions that are live.
local function live()
  return count - overdue
end

-- How many sessions of a large pool were silent for their TTL.
local function count_silent()
  local silent = 0
  for n, its_ttl in ipairs(ttls) do
    if now >= its_ttl then
      local base = (n - 1) * RANGE
      silent = silent + call('ZCOUNT', ORDER, base, base + now - its_ttl)
    end
  end
  return silent
end

-- Sessions that are over: of a large pool at most ENDS_MAX.
local function some_over()
  local over = {}
  if not large then
    for _, s in ipairs(sessions) do
      if expiry_of(s) <= now then
        over[#over + 1] = s
      end
    end
    return over
  end
  if ends_at <= now then
    return read_scored(call('ZRANGE', ORDER, 0, ENDS_MAX - 1, 'WITHSCORES'))
  end
  for n, its_ttl in ipairs(ttls) do
    for _, s in ipairs(read_scored(stalest_of(n, now - its_ttl, ENDS_MAX - #over))) do
      over[#over + 1] = s
    end
  end
  return over
end

-- Ends what is over.
local function forget_over()
  local over = some_over()
  take_out_all(over, EXPIRED)
  overdue = 0
  if large and #over == ENDS_MAX then
    overdue = ends_at <= now and count or count_silent()
  end
end

-- Ends every session for a reason, those that were over before as expired.
local function end_all(reason)
  forget_over()
  if overdue > 0 then
    return
  end
  if large then
    take_out_all(read_scored(call('ZRANGE', ORDER, 0, ENDS_MAX - 1, 'WITHSCORES')), reason)
  else
    take_out_all(sessions, reason)
  end
end

-- Lets the pool learn terms ('' for none), and ends what is over under the old or the new, and all if it is closed.
local function revise(told)
  forget_over()
  if told ~= '' and learn(told) then
    forget_over()
  end
  if closed then
    end_all(ENTITLEMENT_ENDED)
  end
end
