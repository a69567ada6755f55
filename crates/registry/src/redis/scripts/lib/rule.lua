-- What core's rule does to a pool, beside admitting. Follows due.lua.
--
-- One step ends about ENDS_MAX sessions at most, for nobody else is served meanwhile. What is over, and was too much
-- to be ended, takes no seat (see `overdue`), and the sweeper comes for it at once.

-- Ends what is over.
local function forget_over()
  local over = members.over()
  take_out_all(over, EXPIRED)
  pool.overdue = #over == ENDS_MAX and members.count_over() or 0
end

-- All that a step does which only looks: what is over ends, and is on record.
local function settle()
  forget_over()
  record_ends('', 0)
  save_pool()
  if #pool.ended > 0 then
    keep_due()
  end
  keep_head()
end

-- Ends every session for a reason, those that were over before as expired.
local function end_all(reason)
  forget_over()
  if pool.overdue == 0 then
    take_out_all(members.some_stalest(ENDS_MAX), reason)
  end
end

-- Takes over terms if they are newer than what is known, and says whether they are.
local function learn(told)
  if pool.terms ~= '' then
    local high, low = struct.unpack('>I4I4', told)
    local known_high, known_low = struct.unpack('>I4I4', pool.terms)
    if high < known_high or (high == known_high and low <= known_low) then
      return false
    end
  end
  know(told)
  pool.changed = true
  return true
end

-- Lets the pool learn terms ('' for none), and ends what is over under the old or the new, and all if it is closed.
local function revise(told)
  forget_over()
  if told ~= '' and told ~= pool.terms and learn(told) then
    forget_over()
  end
  if pool.closed then
    end_all(ENTITLEMENT_ENDED)
  end
end
