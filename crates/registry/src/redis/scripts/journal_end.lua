-- Reads the end of a bucket's journal.
--
-- Reply the time, …
local function step()
  return reply()
end
