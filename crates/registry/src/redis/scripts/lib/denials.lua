-- Denials go on record too, but cannot be used to fill the disk. Follows record.lua.
--
-- A pool that denies keeps: when the window began (6 bytes), how many denials of it are on record (1), how many
-- are only counted (5), and the last one: why (1), what goes with that (6), who asked.
local function read_denials()
  if denials == '' then
    return nil
  end
  local fold, at = {}, nil
  fold.began, fold.recorded, fold.counted, fold.why, fold.value, at = parse('>I6BI5BI6', denials)
  fold.holder = denials:sub(at)
  return fold
end

local function write_denials(fold)
  changed, denials = true, ''
  if fold then
    denials = pack('>I6BI5BI6', fold.began, fold.recorded, fold.counted, fold.why, fold.value) .. fold.holder
  end
end

-- When denials that were only counted go on record; NEVER while there are none.
local function denials_due()
  local fold = read_denials()
  return fold and fold.counted > 0 and fold.began + DENIAL_WINDOW_MS or NEVER
end

local function record_denied(fold, number, was_counted, origin)
  record_event(DENIED, count, origin, pack('>BI6I5B', fold.why, fold.value, number, was_counted) .. fold.holder)
end

local function record_counted(fold)
  if fold.counted > 0 and now >= fold.began + DENIAL_WINDOW_MS then
    record_denied(fold, fold.counted, 1, '')
    fold.counted = 0
  end
end

-- Records a denial, or only counts it.
local function record_denial(holder, why, value, origin)
  local fold = read_denials() or { began = now, recorded = 0, counted = 0 }
  record_counted(fold)
  if now >= fold.began + DENIAL_WINDOW_MS then
    fold.began, fold.recorded = now, 0
  end
  fold.holder, fold.why, fold.value = holder, why, value
  if fold.recorded < DENIALS_RECORDED_MAX then
    fold.recorded = fold.recorded + 1
    record_denied(fold, 1, 0, origin)
  else
    fold.counted = fold.counted + 1
  end
  write_denials(fold)
end

-- Records denials that were only counted, once their window is over, and forgets a window that is.
local function flush_denials()
  local fold = read_denials()
  if fold then
    record_counted(fold)
    local spent = fold.counted == 0 and now >= fold.began + DENIAL_WINDOW_MS
    write_denials(not spent and fold or nil)
  end
end
