-- Finding sessions of the pool. Follows session.lua.

-- The session of a large pool with this key, score and value.
local function read_large(key, score, value)
  local n = floor(score / RANGE)
  return { key = key, id = value:sub(1, 16), body = value:sub(17), heartbeat = score - n * RANGE, ttl = ttls[n + 1] }
end

-- The sessions of a large pool with these keys and scores, which alternate.
local function read_scored(scored)
  local found = {}
  for from = 1, #scored, 2 * READ_MAX do
    local keys = {}
    for i = from, math.min(#scored, from + 2 * READ_MAX - 1), 2 do
      keys[#keys + 1] = scored[i]
    end
    for i, value in ipairs(call('HMGET', SESSIONS, unpack(keys))) do
      found[#found + 1] = read_large(keys[i], tonumber(scored[from + 2 * i - 1]), value)
    end
  end
  return found
end

-- Keys and scores of its sessions of the n-th TTL that were renewed by then, the stalest first, at most `max`.
local function stalest_of(n, by, max)
  if by < 0 then
    return {}
  end
  local base = (n - 1) * RANGE
  return call('ZRANGEBYSCORE', ORDER, base, base + math.min(by, RANGE - 1), 'WITHSCORES', 'LIMIT', 0, max)
end

-- Keys and scores of its sessions with this score.
local function tied_at(score)
  return call('ZRANGEBYSCORE', ORDER, score, score, 'WITHSCORES', 'LIMIT', 0, TIED_MAX)
end

local function by_key(key)
  local value = call('HGET', SESSIONS, key)
  return value and read_large(key, tonumber(call('ZSCORE', ORDER, key)), value) or nil
end

-- Whether a session can only be found with its key, which the caller did not say.
local function needs_key(id, key)
  return large and id ~= '' and key == ''
end

-- The session of this id; a large pool finds it by its key, or by NO_KEY for one that is known not to be there.
local function by_id(id, key)
  if large then
    local s = key ~= NO_KEY and by_key(key)
    return s and s.id == id and s or nil
  end
  for _, s in ipairs(sessions) do
    if s.id == id then
      return s
    end
  end
end

-- The session of this holder, or in a large pool of this key.
local function by_holder(holder, key)
  if large then
    return by_key(key)
  end
  for _, s in ipairs(sessions) do
    if read_body(s).holder == holder then
      return s
    end
  end
end

-- The session that goes first when one must. Of those that were renewed in one millisecond no more than TIED_MAX
-- are compared.
local function stalest()
  if not large then
    return least(sessions)
  end
  local firsts = {}
  for n in ipairs(ttls) do
    local scored = stalest_of(n, RANGE, 1)
    if #scored > 0 then
      firsts[#firsts + 1] = least(read_scored(tied_at(scored[2])))
    end
  end
  return least(firsts)
end

-- When the next session is over unless renewed; NEVER if nobody is in.
local function next_expiry()
  if count == 0 then
    return NEVER
  end
  local next = ends_at
  if large then
    for n, its_ttl in ipairs(ttls) do
      local scored = stalest_of(n, RANGE, 1)
      if #scored > 0 then
        next = math.min(next, scored[2] % RANGE + its_ttl)
      end
    end
  else
    for _, s in ipairs(sessions) do
      next = math.min(next, s.heartbeat + s.ttl)
    end
  end
  return next
end

-- When the pool will be below its limit at the earliest, if nobody renews; NEVER for a limit of 0.
local function below_limit_at()
  local above = count - limit
  if above < 0 or limit == 0 then
    return NEVER
  end
  if large and #ttls == 1 then
    return math.min(call('ZRANGE', ORDER, above, above, 'WITHSCORES')[2] + ttls[1], ends_at)
  end
  local silent = {}
  if large then
    above = math.min(above, TIED_MAX)
    for n, its_ttl in ipairs(ttls) do
      local scored = stalest_of(n, RANGE, above + 1)
      for i = 2, #scored, 2 do
        silent[#silent + 1] = scored[i] % RANGE + its_ttl
      end
    end
  else
    for i, s in ipairs(sessions) do
      silent[i] = s.heartbeat + s.ttl
    end
  end
  table.sort(silent)
  return math.min(silent[above + 1], ends_at)
end
