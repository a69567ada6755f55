-- The time, this server's clock, and whether the clock is trusted; see registry.tell_time.
SELECT now, clock, is_trusted FROM registry.tell_time($1, $2)
