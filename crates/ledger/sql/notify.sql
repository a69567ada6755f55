-- Wakes who listens to a channel, in whatever process. $1 channel, $2 payload
SELECT pg_notify($1, $2)
