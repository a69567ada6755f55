-- Ends what a node found to be over in small pools, but in those where something has happened since. It costs a fraction of
-- sweep.lua, for texts are only compared and passed on. All is looked at before anything is written.
--
-- KEYS  from 4 on those of the pools
-- ARGV  1 the time when the node looked · then of each pool: what it is called in the due-index · it, as it was then · as it
--       becomes: what stands before the place of its last event, and behind it · when it is due next · how many events ·
--       and these
-- Reply the time, …, and of each pool how many sessions ended: 0 says that sweep.lua must look
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
