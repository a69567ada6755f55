-- Shows a pool and some of its sessions, the stalest first. What is over ends first.
--
-- ARGV  2 how many sessions at most
-- Reply the time, …, how many are live, its terms or nothing, and the sessions in turn
local max = tonumber(ARGV[2])
if not load_pool() then
  return { NOT_OPEN }
end
forget_over()
record_ends('', 0)
save_pool()
if #ended > 0 then
  keep_due()
end
keep_head()

-- As many of the stalest sessions as it takes, and those that are tied with the last of them.
local function candidates()
  if not large then
    return sessions
  end
  local found = {}
  for n in ipairs(ttls) do
    local scored = stalest_of(n, RANGE, max)
    local last_score = scored[#scored]
    if #scored == 2 * max then
      while #scored > 0 and scored[#scored] == last_score do
        scored[#scored], scored[#scored - 1] = nil, nil
      end
      for _, each in ipairs(tied_at(last_score)) do
        scored[#scored + 1] = each
      end
    end
    for _, s in ipairs(read_scored(scored)) do
      found[#found + 1] = s
    end
  end
  return found
end

local answer = reply(live(), terms)
local found = max > 0 and candidates() or {}
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
