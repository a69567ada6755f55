-- Records denials, throttled so that a flood of denied claims cannot fill the disk. Follows record.lua.
--
-- A pool with recent denials keeps: start of the window (6 bytes), denials of the window on record (1),
-- denials only counted (5), and of the last denial: reason (1), the reason's value (6), holder.

-- Returns the time at which counted denials go on record, or NEVER if no denial is only counted.
local function denials_due()
  if pool.denials == '' then
    return NEVER
  end
  local began, _, counted = struct.unpack('>I6BI5', pool.denials)
  return counted > 0 and began + DENIAL_WINDOW_MS or NEVER
end

-- Returns `add` and `flush` for the pool's denials.
local function denials_of_pool()
  local function record_denied(fold, number, was_counted, origin)
    local rest = struct.pack('>BI6I5B', fold.why, fold.value, number, was_counted) .. fold.holder
    record_event(DENIED, pool.count, origin, rest)
  end

  local function is_over(fold)
    return now >= fold.began + DENIAL_WINDOW_MS
  end

  local function record_counted(fold)
    if fold.counted > 0 and is_over(fold) then
      record_denied(fold, fold.counted, 1, '')
      fold.counted = 0
    end
  end

  local function read()
    local fold = {}
    fold.began, fold.recorded, fold.counted, fold.why, fold.value = struct.unpack('>I6BI5BI6', pool.denials)
    fold.holder = pool.denials:sub(20)
    return fold
  end

  local function write(fold)
    pool.changed = true
    pool.denials = struct.pack('>I6BI5BI6', fold.began, fold.recorded, fold.counted, fold.why, fold.value)
      .. fold.holder
  end

  return {
    -- Records a denial, or only counts it once the window has DENIALS_RECORDED_MAX on record.
    add = function(holder, why, value, origin)
      local fold = pool.denials == '' and { began = now, recorded = 0, counted = 0 } or read()
      record_counted(fold)
      if is_over(fold) then
        fold.began, fold.recorded = now, 0
      end
      fold.holder, fold.why, fold.value = holder, why, value
      if fold.recorded < DENIALS_RECORDED_MAX then
        fold.recorded = fold.recorded + 1
        record_denied(fold, 1, 0, origin)
      else
        fold.counted = fold.counted + 1
      end
      write(fold)
    end,

    -- Records the counted denials once their window is over, and drops a window that is over. A window must
    -- exist.
    flush = function()
      local fold = read()
      record_counted(fold)
      write(fold)
      if fold.counted == 0 and is_over(fold) then
        pool.denials = ''
      end
    end,
  }
end
