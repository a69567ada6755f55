-- Reads the cuts of the session streams of the given pools. A pool that retention has never cut has no row.
-- `/* rows */` stands for a group (tenant, pool kind, pool) per pool.
SELECT c.tenant_id, c.pool_kind, c.pool_id, c.seq
FROM (VALUES /* rows */) AS pool
JOIN audit_cuts AS c
    ON c.tenant_id = pool.column1 AND c.pool_kind = pool.column2 AND c.pool_id = pool.column3
