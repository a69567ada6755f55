-- Reads when the first pool of a bucket is due, and corrects the bound in the head, which may be too early.
--
-- Reply the time, …, and when the first is due, if there is a pool
local function step()
  local first = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  local exact = tonumber(first or NEVER)
  if exact ~= due then
    due, must_keep_head = exact, true
  end
  keep_head()
  return reply(first)
end
