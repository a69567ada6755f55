-- Reads the end of a bucket's journal. Raises the mark to the time of the reply, so that no later event is dated
-- earlier: the emission of usage relies on the order.
--
-- Reply the time, …
local function step()
  must_keep_head = must_keep_head or now > mark
  keep_head()
  return reply()
end
