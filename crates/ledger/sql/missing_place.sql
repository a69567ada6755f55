-- One of the given places of session streams that is neither on record nor deleted by retention, if there is
-- one. `/* rows */` stands for one group (tenant, pool kind, pool, seq) a place.
--
-- A place is asked for as the last one of all streams up to itself, of which only the index of the streams has the
-- order. By equality PostgreSQL's planner, which has no statistics of a young table, may as well take another index that
-- begins with the tenant, and keeps reading through all of the tenant's records.
SELECT place.column1 AS tenant_id, place.column2 AS pool_kind, place.column3 AS pool_id, place.column4 AS seq
FROM (VALUES /* rows */) AS place
WHERE NOT EXISTS (
        SELECT 1 FROM (
            SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log
            WHERE (tenant_id, pool_kind, pool_id, stream, seq)
                <= (place.column1, place.column2, place.column3, 'session', place.column4)
            ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
            LIMIT 1
        ) AS last
        WHERE last.tenant_id = place.column1 AND last.pool_kind = place.column2 AND last.pool_id = place.column3
          AND last.stream = 'session' AND last.seq = place.column4
    )
  AND NOT EXISTS (
        SELECT 1 FROM audit_cuts AS c
        WHERE c.tenant_id = place.column1 AND c.pool_kind = place.column2 AND c.pool_id = place.column3
          AND c.seq >= place.column4
    )
LIMIT 1
