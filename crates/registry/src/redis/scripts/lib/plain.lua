-- The common case of a step on a pool: an open pool with known terms and live sessions. Every other case takes
-- `rare_step`, whose functions are made on demand. The common case reads the values of pool.lua and session.lua
-- in place, because making tables and functions costs more than the step itself. Follows bucket.lua.
local raw, terms_at, denials_at, sessions_at    -- the stored pool, and where its parts begin
local is_large, limit, ttl, ends_at
local rare

local function has(flags, flag)
  return flags % (2 * flag) >= flag
end

-- Reads the pool. Returns false if the pool is not in the common case. In a large pool, `sessions_at` is where
-- the TTLs in use begin.
local function read_plain_pool()
  raw = redis.call('GET', POOL)
  local flags = raw and raw:byte()
  if not flags or not has(flags, HAS_TERMS) or has(flags, IS_EMPTY) then
    return false
  end
  is_large = has(flags, IS_LARGE)
  terms_at = 16 + struct.unpack('>H', raw, 14)
  local closed
  limit, ttl, ends_at, closed, sessions_at = struct.unpack('>I4I5I6B', raw, terms_at + 8)
  denials_at = nil
  if has(flags, HAS_DENIALS) then
    denials_at = sessions_at + 2
    sessions_at = denials_at + struct.unpack('>H', raw, sessions_at)
  end
  return closed == 0 and ends_at > now
end

-- Returns the reply of `plain`, or the reply of the rare case if `plain` returns nil. A `plain` that returns
-- nil has changed nothing.
local function plain_or_rare(plain)
  local answer = read_plain_pool() and plain()
  if answer then
    return answer
  end
  rare = rare or rare_step()
  return rare()
end
