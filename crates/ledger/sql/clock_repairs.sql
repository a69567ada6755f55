-- Reads all repairs of registry time, in order.
SELECT id, repaired_at, wrong_until, audit_head, actor, sessions FROM clock_repairs ORDER BY id
