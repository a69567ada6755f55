-- Reads the time at which a bucket's first pool is due, and corrects the bound in the head, which may be too
-- early. Atomic, so that no pool enters the due-index between the read and the correction.
--
-- Reply the time, …, and the first score of the due-index, if any
local function step()
  local first = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  local exact = tonumber(first or NEVER)
  if exact ~= due then
    due, must_keep_head = exact, true
  end
  keep_head()
  return reply(first)
end
