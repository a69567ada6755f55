-- Reads a pool in the common case: every session is live, and the caller wants all of them. Every other read
-- takes `rare_step` (view.lua). Follows lib/plain.lua.
--
-- ARGV  2 as in view.lua
-- Reply as in view.lua, but the sessions are in any order

-- Appends a session's fields to an answer. Returns false if the session is over.
local function append(answer, id, heartbeat, own_ttl, body)
  local silent, n = heartbeat + own_ttl, #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = id, heartbeat, own_ttl
  answer[n + 4], answer[n + 5] = math.min(silent, ends_at, NEVER), body
  return silent > now
end

-- Appends the sessions of a small pool. Returns their number, or nil if a session is over.
local function append_small(answer)
  local at, count = sessions_at, 0
  while at <= #raw do
    local id, heartbeat, own_ttl, body, next_at = struct.unpack('>c16I6I5Hc0', raw, at)
    if not append(answer, id, heartbeat, own_ttl, body) then
      return nil
    end
    at, count = next_at, count + 1
  end
  return count
end

-- Does the same for a large pool with one TTL in use and at most `max` sessions.
local function append_large(answer, max)
  local has_one_ttl = sessions_at + 4 == #raw
  if not has_one_ttl or redis.call('ZCARD', ORDER) > math.min(max, READ_MAX) then
    return nil
  end
  local own_ttl = struct.unpack('>I5', raw, sessions_at)
  local scored, keys = redis.call('ZRANGE', ORDER, 0, -1, 'WITHSCORES'), {}
  for i = 1, #scored, 2 do
    keys[#keys + 1] = scored[i]
  end
  for i, value in ipairs(redis.call('HMGET', SESSIONS, unpack(keys))) do
    if not append(answer, value:sub(1, 16), tonumber(scored[2 * i]), own_ttl, value:sub(17)) then
      return nil
    end
  end
  return #keys
end

local function view_plain()
  local max, answer = tonumber(ARGV[2]), reply(0, raw:sub(terms_at, terms_at + TERMS_BYTES - 1))
  local count = (is_large and append_large or append_small)(answer, max)
  if not count or count > max then
    return nil
  end
  -- The place behind the four numbers of every reply.
  answer[5] = count
  keep_head()
  return answer
end

local function step()
  return plain_or_rare(view_plain)
end
