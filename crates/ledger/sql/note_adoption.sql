-- Records the successor of a lost region, unless a successor is on record. $1 lost region, $2 successor, $3 time from which
-- the successor admits, $4 time
INSERT INTO region_adoptions (lost, successor, admits_from, first_admits_from, is_done, audit_head, at)
VALUES ($1, $2, $3, $3, 0, (SELECT COALESCE(MAX(id), 0) FROM audit_log), $4)
ON CONFLICT (lost) DO NOTHING
