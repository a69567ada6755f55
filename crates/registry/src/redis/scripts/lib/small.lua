-- The members of a small pool: they are all there, and save_pool writes them. Follows session.lua.
--
-- large.lua offers the same for a large one.
local function small_members()
  return {
    -- Whether a session can only be found with its key, which the caller did not say.
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

    -- The member that goes first when one must.
    stalest = function()
      return least(pool.sessions)
    end,

    -- The stalest, at least `max` if there are as many, in any order.
    some_stalest = function()
      return pool.sessions
    end,

    -- Those that are over.
    over = function()
      local over = {}
      for _, s in ipairs(pool.sessions) do
        if expiry_of(s) <= now then
          over[#over + 1] = s
        end
      end
      return over
    end,

    -- How many are over.
    count_over = function()
      return 0
    end,

    -- When the n-th to fall silent does so, counted from 0.
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

    -- Writes a session that was renewed, for this TTL.
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
