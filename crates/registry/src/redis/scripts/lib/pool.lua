-- One open pool: what it knows, and how it is kept. Follows bucket.lua.
--
-- A small pool is one string (POOL): what it knows, then its sessions. That takes least memory and fewest calls.
-- Once it has had more than SMALL_MAX sessions, and until it is empty, it is large: then SESSIONS is a hash of them
-- by key, and ORDER a sorted set of the keys, scored by the last heartbeat in milliseconds. A key is the first bytes of
-- a hash of the holder. So no step looks at more sessions than it ends.
--
-- The order of last heartbeats is also the order of expiry among sessions of one TTL. A large pool has the list of
-- TTLs in use; sessions of the n-th are scored by (n - 1) * RANGE + last heartbeat. Nearly always there is one.
local RANGE = 2 ^ 42
local HAS_TERMS, IS_LARGE, HAS_DENIALS, IS_EMPTY = 1, 2, 4, 8

local seq, last_event, empty_since, pool_id                             -- its place in the record
local terms, version_high, version_low, limit, ttl, ends_at, closed     -- the newest terms it has seen
local denials                                                           -- see denials.lua
local large, ttls, sessions, count                                      -- who is in
local changed = false    -- whether it must be written as a whole
local overdue = 0        -- sessions that are over, but were too many to be ended in this step

local function know(told)
  terms = told
  version_high, version_low, limit, ttl, ends_at, closed = parse('>I4I4I4I5I6B', told)
  closed = closed == 1
end

-- A pool of which nothing was ever known has one seat.
local function know_nothing()
  terms, limit, ttl, ends_at, closed = '', 1, nil, NEVER, false
end

-- Takes over terms if they are newer than what is known, and says whether they are.
local function learn(told)
  if terms ~= '' then
    local high, low = parse('>I4I4', told)
    if high < version_high or (high == version_high and low <= version_low) then
      return false
    end
  end
  know(told)
  changed = true
  return true
end

-- Reads the pool; false if it is not open.
local function load_pool()
  local raw = call('GET', POOL)
  if not raw then
    return false
  end
  local flags, at
  flags, seq, last_event, at = parse('>BI6I6', raw)
  if flags % (2 * IS_EMPTY) >= IS_EMPTY then
    empty_since, at = parse('>I6', raw, at)
  end
  pool_id, at = parse('>Hc0', raw, at)
  if flags % (2 * HAS_TERMS) >= HAS_TERMS then
    know(raw:sub(at, at + TERMS_BYTES - 1))
    at = at + TERMS_BYTES
  else
    know_nothing()
  end
  denials = ''
  if flags % (2 * HAS_DENIALS) >= HAS_DENIALS then
    denials, at = parse('>Hc0', raw, at)
  end
  large = flags % (2 * IS_LARGE) >= IS_LARGE
  if large then
    ttls = {}
    while at <= #raw do
      ttls[#ttls + 1], at = parse('>I5', raw, at)
    end
    count = call('ZCARD', ORDER)
    return true
  end
  sessions, count = {}, 0
  while at <= #raw do
    local s = { at = at + 16 }
    s.id, s.heartbeat, s.ttl, s.body, at = parse('>c16I6I5Hc0', raw, at)
    count = count + 1
    sessions[count] = s
  end
  return true
end

-- A pool that nobody is in yet.
local function new_pool(id, number, told)
  seq, last_event, pool_id, denials = number, 0, id, ''
  if told == '' then
    know_nothing()
  else
    know(told)
  end
  large, sessions, count, changed = false, {}, 0, true
end

-- Writes what changed: of a small pool in which sessions were renewed and nothing else happened, only when.
local function save_pool()
  if not changed then
    for _, s in ipairs(sessions or {}) do
      if s.renewed then
        call('SETRANGE', POOL, s.at - 1, pack('>I6', s.heartbeat))
      end
    end
    return
  end
  empty_since = count == 0 and (empty_since or now) or nil
  local flags = (terms ~= '' and HAS_TERMS or 0) + (large and IS_LARGE or 0)
    + (denials ~= '' and HAS_DENIALS or 0) + (empty_since and IS_EMPTY or 0)
  local parts = {
    pack('>BI6I6', flags, seq, last_event),
    empty_since and pack('>I6', empty_since) or '',
    pack('>Hc0', #pool_id, pool_id),
    terms,
    denials ~= '' and pack('>Hc0', #denials, denials) or '',
  }
  if large then
    for _, its_ttl in ipairs(ttls) do
      parts[#parts + 1] = pack('>I5', its_ttl)
    end
  else
    for _, s in ipairs(sessions) do
      parts[#parts + 1] = pack('>c16I6I5Hc0', s.id, s.heartbeat, s.ttl, #s.body, s.body)
    end
  end
  call('SET', POOL, table.concat(parts))
end
