-- Returns at most one of the given records of session streams that is neither on record nor deleted by
-- retention.
-- `/* rows */` stands for a group (tenant, pool kind, pool, seq) per record.
SELECT place.column1 AS tenant_id, place.column2 AS pool_kind, place.column3 AS pool_id, place.column4 AS seq
FROM (VALUES /* rows */) AS place
WHERE NOT EXISTS (
        SELECT 1 FROM audit_log AS last
        WHERE last.tenant_id = place.column1 AND last.pool_kind = place.column2 AND last.pool_id = place.column3
          AND last.stream = 'session' AND last.seq = place.column4
    )
  AND NOT EXISTS (
        SELECT 1 FROM audit_cuts AS c
        WHERE c.tenant_id = place.column1 AND c.pool_kind = place.column2 AND c.pool_id = place.column3
          AND c.seq >= place.column4
    )
LIMIT 1
