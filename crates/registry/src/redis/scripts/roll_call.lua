-- Writes a node's entry on the roll (alive, ledger in reach or not), and returns all entries. Stands alone.
--
-- KEYS  1 the roll: a hash of node to time and state
-- ARGV  1 the node · 2 '1' if it may reach the ledger, '0' if it does not, or nothing if it leaves · 3 after how many
--       milliseconds a node is forgotten
-- Reply of each node in turn: which it is, how many milliseconds ago it noted that (a negative number if the clock went
--       back since), and 1 or 0
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %s', now, ARGV[2]))
end
local roll, answer = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #roll, 2 do
  local at, state = roll[i + 1]:match('^(%d+) ([01])$')
  local ago = at and now - tonumber(at)
  if not ago or math.abs(ago) > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], roll[i])
  else
    answer[#answer + 1] = roll[i]
    answer[#answer + 1] = ago
    answer[#answer + 1] = tonumber(state)
  end
end
return answer
