-- Records a repair of registry time.
-- $1 repaired at, $2 wrong until, $3 id of the newest audit record, $4 actor, $5 number of live sessions
INSERT INTO clock_repairs (repaired_at, wrong_until, audit_head, actor, sessions)
VALUES ($1, $2, $3, $4, $5)
