-- How far a bucket's journal goes.
--
-- Reply the time, …
return reply()
