-- Reads registry time of the section that starts at bucket $1, the server's clock, and the trust in the clock: see registry.tell_time.
SELECT now, clock, is_trusted FROM registry.tell_time($1, $2, $3)
