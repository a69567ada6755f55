-- Gives each session a full TTL, and trusts a clock whose lease is over: see registry.trust_clock.
SELECT sessions, skipped FROM registry.trust_clock($1, $2)
