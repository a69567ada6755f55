-- Runs `step` for each call of a batch in turn. Last file of a script.
--
-- In a batch of several calls, a failed call does not fail the rest: its reply is ASK_ALONE, and the caller
-- repeats the call in a command of its own to learn the error.
--
-- KEYS  the keys of each call, equally many per call
-- ARGV  1 number of calls · then the arguments of each call, equally many per call
-- Reply the reply of each call
local calls = tonumber(all_args[1])
local keys_each, args_each = #all_keys / calls, (#all_args - 1) / calls

local function answer()
  if enter() then
    return step()
  end
  return { NOT_SERVING }
end

local replies = {}
for n = 1, calls do
  KEYS = { unpack(all_keys, (n - 1) * keys_each + 1, n * keys_each) }
  ARGV = { unpack(all_args, (n - 1) * args_each + 2, n * args_each + 1) }
  if calls == 1 then
    replies[n] = answer()
  else
    local is_done, reply = pcall(answer)
    replies[n] = is_done and reply or { ASK_ALONE }
  end
end
return replies
