-- Reads a pool and some of its sessions, the stalest first, after ending sessions that are over.
--
-- ARGV  2 maximum number of sessions
-- Reply the time, …, the number of live sessions, terms or '', and the sessions in turn
local function step()
  local max = tonumber(ARGV[2])
  if not load_pool() then
    return { NOT_OPEN }
  end
  find_members()
  settle()

  local answer = reply(pool.count - pool.overdue, pool.terms)
  local found = max > 0 and members.some_stalest(max) or {}
  table.sort(found, before)
  for _, s in ipairs(found) do
    if max > 0 and not is_over(s) then
      max = max - 1
      for _, part in ipairs({ shown(s) }) do
        answer[#answer + 1] = part
      end
    end
  end
  return answer
end
