-- The state of a pool, and its encoding. Follows bucket.lua.
--
-- A small pool is one string (POOL): the pool's state, followed by its sessions, for least memory and fewest
-- commands. A pool past SMALL_MAX sessions becomes large, and stays large until empty. SESSIONS is then a
-- hash of sessions by key, and ORDER a sorted set of keys, scored by last heartbeat in milliseconds. A key is
-- the first bytes of a hash of the holder. So no step reads more sessions than it ends.
--
-- The state is: flags (1 byte), number of the last event (6), journal position of the last event (6), start
-- of emptiness (6, if empty), id (after its length in 2), terms (TERMS_BYTES, if known), denials (after their
-- length in 2, if recent: see denials.lua), and in a large pool the TTLs in use (5 each).
--
-- Functions that few steps need are made by a function on demand, because making functions costs time in
-- every command.
local pool

-- Sets the pool's terms; '' means unknown terms. A pool of unknown terms has one seat.
local function know(terms)
  pool.terms = terms
  if terms == '' then
    pool.limit, pool.ttl, pool.ends_at, pool.closed = 1, nil, NEVER, false
    return
  end
  local closed
  pool.limit, pool.ttl, pool.ends_at, closed = struct.unpack('>I4I5I6B', terms, 9)
  pool.closed = closed == 1
end

-- Loads the pool. Returns false if the pool is not open. The count of a large pool stays unset: see
-- members.lua.
local function load_pool()
  local raw = redis.call('GET', POOL)
  if not raw then
    return false
  end
  pool = { denials = '', overdue = 0, sessions = {}, ended = {} }
  local flags, at
  flags, pool.seq, pool.last_event, at = struct.unpack('>BI6I6', raw)
  if flags % (2 * IS_EMPTY) >= IS_EMPTY then
    pool.empty_since, at = struct.unpack('>I6', raw, at)
  end
  pool.id, at = struct.unpack('>Hc0', raw, at)
  local terms = ''
  if flags % (2 * HAS_TERMS) >= HAS_TERMS then
    terms = raw:sub(at, at + TERMS_BYTES - 1)
    at = at + TERMS_BYTES
  end
  know(terms)
  if flags % (2 * HAS_DENIALS) >= HAS_DENIALS then
    pool.denials, at = struct.unpack('>Hc0', raw, at)
  end
  if flags % (2 * IS_LARGE) >= IS_LARGE then
    pool.ttls = {}
    while at <= #raw do
      pool.ttls[#pool.ttls + 1], at = struct.unpack('>I5', raw, at)
    end
    return true
  end
  local count = 0
  while at <= #raw do
    local s = { at = at + 15 }
    s.id, s.heartbeat, s.ttl, s.body, at = struct.unpack('>c16I6I5Hc0', raw, at)
    count = count + 1
    pool.sessions[count] = s
  end
  pool.count = count
  return true
end

-- Writes the changed pool and the events of the step. If a small pool saw only renewals, writes the
-- heartbeats alone.
local function save_pool()
  if not pool.changed then
    for _, s in ipairs(pool.sessions) do
      if s.renewed then
        redis.call('SETRANGE', POOL, s.at, struct.pack('>I6', s.heartbeat))
      end
    end
    return
  end
  write_events()
  pool.empty_since = pool.count == 0 and (pool.empty_since or now) or nil
  local flags = (pool.terms ~= '' and HAS_TERMS or 0) + (pool.ttls and IS_LARGE or 0)
    + (pool.denials ~= '' and HAS_DENIALS or 0) + (pool.empty_since and IS_EMPTY or 0)
  local parts = {
    struct.pack('>BI6I6', flags, pool.seq, pool.last_event),
    pool.empty_since and struct.pack('>I6', pool.empty_since) or '',
    struct.pack('>Hc0', #pool.id, pool.id),
    pool.terms,
    pool.denials ~= '' and struct.pack('>Hc0', #pool.denials, pool.denials) or '',
  }
  for _, ttl in ipairs(pool.ttls or {}) do
    parts[#parts + 1] = struct.pack('>I5', ttl)
  end
  for _, s in ipairs(pool.sessions) do
    parts[#parts + 1] = struct.pack('>c16I6I5Hc0', s.id, s.heartbeat, s.ttl, #s.body, s.body)
  end
  redis.call('SET', POOL, table.concat(parts))
end
