-- The members of a large pool: see pool.lua. Each change is written at once. Follows small.lua, with the same
-- functions.
--
-- Among sessions of one TTL, the order of last heartbeats is the order of expiry. Sessions of the n-th TTL in
-- use have the score (n - 1) * RANGE + last heartbeat. A pool nearly always has one TTL in use.
local function large_members()
  local function member(key, score, value)
    local n = math.floor(score / RANGE)
    return {
      key = key, id = value:sub(1, 16), body = value:sub(17), heartbeat = score - n * RANGE, ttl = pool.ttls[n + 1],
    }
  end

  -- Loads the members of an alternating list of keys and scores.
  local function members_of(scored)
    local found = {}
    for from = 1, #scored, 2 * READ_MAX do
      local keys = {}
      for i = from, math.min(#scored, from + 2 * READ_MAX - 1), 2 do
        keys[#keys + 1] = scored[i]
      end
      for i, value in ipairs(redis.call('HMGET', SESSIONS, unpack(keys))) do
        found[#found + 1] = member(keys[i], tonumber(scored[from + 2 * i - 1]), value)
      end
    end
    return found
  end

  -- Returns keys and scores of sessions of the n-th TTL with a last heartbeat at or before `by`, the stalest
  -- first, at most `max`.
  local function renewed_by(n, by, max)
    if by < 0 then
      return {}
    end
    local base = (n - 1) * RANGE
    return redis.call('ZRANGEBYSCORE', ORDER, base, base + math.min(by, RANGE - 1), 'WITHSCORES', 'LIMIT', 0, max)
  end

  local function tied_at(score)
    return redis.call('ZRANGEBYSCORE', ORDER, score, score, 'WITHSCORES', 'LIMIT', 0, TIED_MAX)
  end

  local function by_key(key)
    local value = redis.call('HGET', SESSIONS, key)
    return value and member(key, tonumber(redis.call('ZSCORE', ORDER, key)), value) or nil
  end

  -- Returns whether no session has the n-th TTL.
  local function is_unused(n)
    local base = (n - 1) * RANGE
    return redis.call('ZCOUNT', ORDER, base, base + RANGE - 1) == 0
  end

  -- Returns the position of a TTL among the TTLs in use, and adds the TTL if needed. The first unused position serves
  -- as well as a later one of the TTL: so sessions move to the front, and positions at the end get unused. Beyond
  -- TTLS_MAX, which takes as many changes of the pool's terms within one TTL, the nearest shorter TTL serves.
  local function place_of(ttl)
    local ttls = pool.ttls
    if #ttls == 1 and ttls[1] == ttl then
      return 1
    end
    for n, known in ipairs(ttls) do
      if known == ttl then
        return n
      end
      if is_unused(n) then
        ttls[n], pool.changed = ttl, true
        return n
      end
    end
    pool.changed = true
    if #ttls < TTLS_MAX then
      ttls[#ttls + 1] = ttl
      return #ttls
    end
    local nearest = 1
    for n, known in ipairs(ttls) do
      if known < ttl and (known > ttls[nearest] or ttls[nearest] > ttl) then
        nearest = n
      end
    end
    return nearest
  end

  local function put_in_order(s, ttl)
    local n = place_of(ttl)
    s.ttl = pool.ttls[n]
    redis.call('ZADD', ORDER, (n - 1) * RANGE + s.heartbeat, s.key)
    -- A pool with one TTL takes the common case of each step: see plain.lua.
    while #pool.ttls > 1 and is_unused(#pool.ttls) do
      pool.ttls[#pool.ttls], pool.changed = nil, true
    end
  end

  local function rewrite(s)
    redis.call('HSET', SESSIONS, s.key, s.id .. s.body)
  end

  return {
    needs_key = function(id, key)
      return id ~= '' and key == ''
    end,

    -- The caller gives the key; NO_KEY says that the pool has no such session.
    by_id = function(id, key)
      local s = key ~= NO_KEY and by_key(key)
      return s and s.id == id and s or nil
    end,

    -- The caller compares the holder, because two holders may have one key.
    by_holder = function(_, key)
      return by_key(key)
    end,

    -- Compares at most TIED_MAX of the sessions renewed in one millisecond.
    stalest = function()
      local firsts = {}
      for n in ipairs(pool.ttls) do
        local scored = renewed_by(n, RANGE, 1)
        if #scored > 0 then
          firsts[#firsts + 1] = least(members_of(tied_at(scored[2])))
        end
      end
      return least(firsts)
    end,

    -- Includes every session tied with the last in order (up to TIED_MAX), so that the caller can break ties.
    some_stalest = function(max)
      local found = {}
      for n in ipairs(pool.ttls) do
        local scored = renewed_by(n, RANGE, max)
        if #scored == 2 * max then
          local score = scored[#scored]
          while #scored > 0 and scored[#scored] == score do
            scored[#scored], scored[#scored - 1] = nil, nil
          end
          for _, each in ipairs(tied_at(score)) do
            scored[#scored + 1] = each
          end
        end
        for _, s in ipairs(members_of(scored)) do
          found[#found + 1] = s
        end
      end
      return found
    end,

    -- Returns at most ENDS_MAX.
    over = function()
      if pool.ends_at <= now then
        return members_of(redis.call('ZRANGE', ORDER, 0, ENDS_MAX - 1, 'WITHSCORES'))
      end
      local over = {}
      for n, ttl in ipairs(pool.ttls) do
        for _, s in ipairs(members_of(renewed_by(n, now - ttl, ENDS_MAX - #over))) do
          over[#over + 1] = s
        end
      end
      return over
    end,

    count_over = function()
      if pool.ends_at <= now then
        return pool.count
      end
      local over = 0
      for n, ttl in ipairs(pool.ttls) do
        if now >= ttl then
          local base = (n - 1) * RANGE
          over = over + redis.call('ZCOUNT', ORDER, base, base + now - ttl)
        end
      end
      return over
    end,

    -- With several TTLs in use, reads up to `nth` + 1 sessions of each.
    silent_at = function(nth)
      local ttls = pool.ttls
      if #ttls == 1 then
        return redis.call('ZRANGE', ORDER, nth, nth, 'WITHSCORES')[2] + ttls[1]
      end
      local silent = {}
      for n, ttl in ipairs(ttls) do
        local scored = renewed_by(n, RANGE, nth + 1)
        for i = 2, #scored, 2 do
          silent[#silent + 1] = scored[i] % RANGE + ttl
        end
      end
      table.sort(silent)
      return silent[nth + 1]
    end,

    put = function(s)
      rewrite(s)
      put_in_order(s, s.ttl)
    end,

    take = function(gone)
      local keys = {}
      for i, s in ipairs(gone) do
        keys[i] = s.key
      end
      redis.call('ZREM', ORDER, unpack(keys))
      redis.call('HDEL', SESSIONS, unpack(keys))
    end,

    renew = put_in_order,
    rewrite = rewrite,
  }
end
