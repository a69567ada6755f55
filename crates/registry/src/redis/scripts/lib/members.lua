-- The pool's members, in a small or a large pool. Follows large.lua.
local members    -- `small` or `large`, once the pool is loaded
local small, large

local function choose_members()
  if pool.ttls then
    large = large or large_members()
    members = large
  else
    small = small or small_members()
    members = small
  end
end

-- Sets the pool's count of sessions. A step on one session of a large pool does not need the count, and saves
-- the command.
local function count_members()
  pool.count = pool.count or redis.call('ZCARD', ORDER)
end

local function find_members()
  choose_members()
  count_members()
end

-- Returns a holder's key in a large pool: the first KEY_BYTES bytes of SHA-1.
local function key_of(holder)
  local hex = redis.sha1hex(holder):sub(1, 2 * KEY_BYTES)
  return (hex:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end))
end

-- Adds a session. Neither its id nor its holder may be in the pool. A small pool past SMALL_MAX becomes
-- large.
local function insert(s)
  pool.count, pool.changed = pool.count + 1, true
  members.put(s)
  if not pool.ttls and pool.count > SMALL_MAX then
    local all = pool.sessions
    pool.ttls, pool.sessions = {}, {}
    choose_members()
    for _, each in ipairs(all) do
      each.key = each.key or key_of(read_body(each).holder)
      members.put(each)
    end
  end
end

-- Removes sessions. An emptied large pool becomes small.
local function remove_all(gone)
  if #gone == 0 then
    return
  end
  pool.count, pool.changed = pool.count - #gone, true
  members.take(gone)
  if pool.count == 0 and pool.ttls then
    pool.ttls, pool.sessions = nil, {}
    choose_members()
  end
end

-- Renews a session as of `now`, for the given TTL.
local function renew(s, ttl)
  s.heartbeat = math.max(s.heartbeat, now)
  members.renew(s, ttl)
end

-- Returns the time of the next expiry unless a heartbeat comes first, or NEVER for an empty pool.
local function next_expiry()
  return pool.count > 0 and math.min(members.silent_at(0), pool.ends_at) or NEVER
end
