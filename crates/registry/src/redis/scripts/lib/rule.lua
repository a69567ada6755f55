-- The admission rule of `core` apart from admission: expiry, terms, closing. Follows due.lua.
--
-- A step ends about ENDS_MAX sessions at most, because Redis serves no other caller meanwhile. Sessions that
-- are over but exceed the bound take no seat (`pool.overdue`), and the pool is due for the sweeper at once.

-- Ends the sessions that are over, at most ENDS_MAX, and counts the rest in `pool.overdue`.
local function forget_over()
  local over = members.over()
  take_out_all(over, EXPIRED)
  pool.overdue = #over == ENDS_MAX and members.count_over() or 0
end

-- Ends and records the sessions that are over. Read-only steps do no more.
local function settle()
  forget_over()
  record_ends('', 0)
  save_pool()
  if #pool.ended > 0 then
    keep_due()
  end
  keep_head()
end

-- Ends the `max` stalest sessions for a reason.
local function take_out_stalest(max, reason)
  local stalest = members.some_stalest(max)
  table.sort(stalest, before)
  for i = #stalest, max + 1, -1 do
    stalest[i] = nil
  end
  take_out_all(stalest, reason)
end

-- Ends sessions for a reason, and sessions already over as expired. At most ENDS_MAX of each: repeated for the rest.
local function end_all(reason)
  forget_over()
  if pool.overdue == 0 then
    take_out_stalest(ENDS_MAX, reason)
  end
end

-- Sets terms newer than the pool's terms, or the TTL alone of terms of the same version. Returns whether the pool's
-- terms changed.
local function learn(told)
  if pool.terms ~= '' then
    local high, low = struct.unpack('>I4I4', told)
    local known_high, known_low = struct.unpack('>I4I4', pool.terms)
    if high < known_high or (high == known_high and low < known_low) then
      return false
    end
    if high == known_high and low == known_low then
      -- The known version and limit, the told TTL, and the known rest: see `know`.
      told = pool.terms:sub(1, 12) .. told:sub(13, 17) .. pool.terms:sub(18)
      if told == pool.terms then
        return false
      end
    end
  end
  know(told)
  pool.changed = true
  return true
end

-- Ends sessions that are over, and all sessions if the pool is closed, at most ENDS_MAX of each. Returns false if some are
-- left.
local function end_by_terms()
  forget_over()
  if pool.closed then
    end_all(ENTITLEMENT_ENDED)
  end
  return pool.overdue == 0 and not (pool.closed and pool.count > 0)
end

-- Offers terms to the pool ('' for none), and ends the sessions that end under the old or the new terms. Returns false if the
-- terms must be offered again: new terms may not save a session that has ended under the old terms.
local function revise(told)
  local is_settled = end_by_terms()
  if told == '' or told == pool.terms then
    return true
  end
  if is_settled and learn(told) then
    end_by_terms()
  end
  return is_settled
end
