-- Expires sessions of small pools, computed by the node, by compare-and-swap: a pool that changed since the
-- node's read stays as it is. The script costs a fraction of sweep.lua, because it only compares and passes
-- on strings. All reads come before the first write.
--
-- KEYS  from 4 on the pools
-- ARGV  1 time of the node's read · then of each pool: its name in the due-index · the value read · the new
--       value before the position of the last event, and after the position · the next due time ·
--       number of events · the events
-- Reply the time, …, and of each pool the number of ended sessions; 0 leaves the pool to sweep.lua
local function step()
  local pools, dues, ended, at = {}, {}, {}, 2
  for i, kept in ipairs(redis.call('MGET', unpack(KEYS, 4))) do
    local name, seen, before, behind, due, events = unpack(ARGV, at, at + 5)
    local from, to = at + 6, at + 5 + events
    ended[i] = 0
    if kept == seen and now >= tonumber(ARGV[1]) then
      for n = from, to do
        record(ARGV[n])
      end
      pools[#pools + 1] = KEYS[3 + i]
      pools[#pools + 1] = before .. struct.pack('>I6', last) .. behind
      dues[#dues + 1] = due
      dues[#dues + 1] = name
      note_due(tonumber(due))
      ended[i] = tonumber(events)
    end
    at = to + 1
  end
  if #pools > 0 then
    write_events()
    redis.call('MSET', unpack(pools))
    redis.call('ZADD', DUE, unpack(dues))
  end
  keep_head()
  return reply(unpack(ended))
end
