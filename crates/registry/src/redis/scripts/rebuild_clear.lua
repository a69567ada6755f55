-- Empties a bucket that is being rebuilt, some pools a step, and in the last step its journal.
--
-- KEYS  from 4 on those of some pools · ARGV  but for the last: what they are called in the due-index
-- Reply the time, …, and how many pools are left
if #KEYS > 3 then
  call('UNLINK', unpack(KEYS, 4))
  call('ZREM', DUE, unpack(ARGV, 1, #ARGV - 1))
end
local left = call('ZCARD', DUE)
if left == 0 then
  call('UNLINK', DUE, JOURNAL)
  call('SET', HEAD, STAMP .. pack('>I6I6I6', now, 0, 0))
end
return reply(left)
