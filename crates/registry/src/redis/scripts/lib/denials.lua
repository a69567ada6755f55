-- Denials go on record too, but cannot be used to fill the disk. Follows record.lua.
--
-- A pool that denies keeps: when the window began (6 bytes), how many denials of it are on record (1), how many
-- are only counted (5), and the last one: why (1), what goes with that (6), who asked.

-- When denials that were only counted go on record; NEVER while there are none.
local function denials_due()
  if pool.denials == '' then
    return NEVER
  end
  local began, _, counted = struct.unpack('>I6BI5', pool.denials)
  return counted > 0 and began + DENIAL_WINDOW_MS or NEVER
end

-- What a pool has of its denials.
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
    -- Records a denial, or only counts it.
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

    -- Records denials that were only counted, once their window is over, and forgets a window that is. There is one.
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
