-- The members of a small pool. All are in memory, and `save_pool` writes them. Follows session.lua.
--
-- large.lua has the same functions for a large pool.
local function small_members()
  return {
    -- Returns whether a session can be found by key alone and the caller gave no key.
    needs_key = function()
      return false
    end,

    by_id = function(id)
      for _, s in ipairs(pool.sessions) do
        if s.id == id then
          return s
        end
      end
    end,

    by_holder = function(holder)
      for _, s in ipairs(pool.sessions) do
        if s.body:find(holder, 1, true) and read_body(s).holder == holder then
          return s
        end
      end
    end,

    -- Returns the next session to evict.
    stalest = function()
      return least(pool.sessions)
    end,

    -- Returns at least the `max` stalest sessions, or all if there are fewer, in any order.
    some_stalest = function()
      return pool.sessions
    end,

    -- Returns the sessions that are over.
    over = function()
      local over = {}
      for _, s in ipairs(pool.sessions) do
        if expiry_of(s) <= now then
          over[#over + 1] = s
        end
      end
      return over
    end,

    -- Returns the number of sessions that are over and remain.
    count_over = function()
      return 0
    end,

    -- Returns the time at which the n-th session falls silent, counted from 0.
    silent_at = function(n)
      local silent = {}
      for i, s in ipairs(pool.sessions) do
        silent[i] = s.heartbeat + s.ttl
      end
      table.sort(silent)
      return silent[n + 1]
    end,

    put = function(s)
      pool.sessions[#pool.sessions + 1] = s
    end,

    take = function(gone)
      local is_gone, left = {}, {}
      for _, s in ipairs(gone) do
        is_gone[s] = true
      end
      for _, s in ipairs(pool.sessions) do
        if not is_gone[s] then
          left[#left + 1] = s
        end
      end
      pool.sessions = left
    end,

    -- Writes a renewed session, for the given TTL.
    renew = function(s, ttl)
      if s.ttl == ttl then
        s.renewed = true
      else
        s.ttl, pool.changed = ttl, true
      end
    end,

    -- Writes the body of a session.
    rewrite = function()
      pool.changed = true
    end,
  }
end
