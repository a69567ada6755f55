-- The time, and by how much the clock is behind it; see registry.tell_time.
SELECT now, behind FROM registry.tell_time()
