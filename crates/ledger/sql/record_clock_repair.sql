-- Puts a repair of registry time on record.
-- $1 from then on, $2 the latest time before, $3 the newest record of the audit log, $4 by whom, $5 live sessions
INSERT INTO clock_repairs (repaired_at, wrong_until, audit_head, actor, sessions)
VALUES ($1, $2, $3, $4, $5)
