-- The sessions that are live on record: one for each holder of a pool. SQLite, unlike PostgreSQL, writes only those index
-- entries of a changed row that change, so they need no table of their own.
CREATE VIEW live_sessions AS
SELECT substr(id, 8, 1) AS bucket, id AS session_id, tenant_id, pool_kind, pool_id, holder
FROM sessions
WHERE ended_at IS NULL;

-- The sessions that a window of usage may need: those that are live, in the order of its batches, and those that ended
-- after its start.
DROP INDEX sessions_metered_live;
DROP INDEX sessions_metered_ended;
CREATE INDEX sessions_metered_live ON sessions (tenant_id, id) WHERE pool_kind = 'capacity' AND ended_at IS NULL;
CREATE INDEX audit_log_metered_ends ON audit_log (at) WHERE pool_kind = 'capacity' AND action = 'ended';
