-- Writes a node's entry on the roll (alive, ledger reachable or not), and returns all entries. Stands alone.
--
-- KEYS  1 the roll: a hash of node to time and state
-- ARGV  1 the node · 2 '1' if the ledger may be reachable, '0' if not, or '' if the node leaves
--       3 milliseconds after which a node is forgotten
-- Reply of each node in turn: name, age of its entry in milliseconds (negative if the clock went back since),
--       1 or 0
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
