-- Takes the step for each call in turn. Follows everything else.
--
-- Where there are several, one that fails fails alone: its answer says that it must be asked by itself, to be told why.
--
-- KEYS  those of each call, as many each
-- ARGV  1 how many calls · then the arguments of each, as many each
-- Reply the reply to each
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
