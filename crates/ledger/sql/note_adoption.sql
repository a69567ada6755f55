-- Records the successor of a lost region, unless another successor is on record. A repeated begin before the end of the
-- adoption moves the time from which the successor admits. $1 lost region, $2 successor, $3 time from which the successor admits,
-- $4 time
INSERT INTO region_adoptions (lost, successor, admits_from, is_done, audit_head, at)
VALUES ($1, $2, $3, 0, (SELECT COALESCE(MAX(id), 0) FROM audit_log), $4)
ON CONFLICT (lost) DO UPDATE SET admits_from = excluded.admits_from
WHERE region_adoptions.successor = excluded.successor AND region_adoptions.is_done = 0
  AND region_adoptions.admits_from < excluded.admits_from
