-- Trusts a clock whose lease is over, once each session has a full TTL; see registry.trust_clock.
SELECT sessions, skipped FROM registry.trust_clock($1, $2)
