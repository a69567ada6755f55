-- The sessions that are live on record: one for each holder of a pool. Whoever changes `sessions` changes them as well.
CREATE TABLE live_sessions (
    -- The eighth byte of the session's id, which names it.
    bucket     BLOB NOT NULL CHECK (length(bucket) = 1),
    session_id BLOB NOT NULL CHECK (length(session_id) = 16),
    tenant_id  TEXT NOT NULL,
    pool_kind  TEXT NOT NULL,
    pool_id    TEXT NOT NULL,
    holder     TEXT NOT NULL,
    PRIMARY KEY (bucket, session_id),
    UNIQUE (tenant_id, pool_kind, pool_id, holder)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sessions_begin AFTER INSERT ON sessions WHEN NEW.ended_at IS NULL
BEGIN
    INSERT INTO live_sessions (bucket, session_id, tenant_id, pool_kind, pool_id, holder)
    VALUES (substr(NEW.id, 8, 1), NEW.id, NEW.tenant_id, NEW.pool_kind, NEW.pool_id, NEW.holder);
END;

CREATE TRIGGER sessions_end AFTER UPDATE OF ended_at ON sessions
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
BEGIN
    DELETE FROM live_sessions WHERE bucket = substr(OLD.id, 8, 1) AND session_id = OLD.id;
END;

INSERT INTO live_sessions (bucket, session_id, tenant_id, pool_kind, pool_id, holder)
SELECT substr(id, 8, 1), id, tenant_id, pool_kind, pool_id, holder FROM sessions WHERE ended_at IS NULL;

DROP INDEX sessions_live;

-- The sessions that a window of usage may need: those that are live, in the order of its batches, and those that ended
-- after its start.
DROP INDEX sessions_metered_live;
DROP INDEX sessions_metered_ended;
CREATE INDEX live_sessions_metered ON live_sessions (tenant_id, session_id) WHERE pool_kind = 'capacity';
CREATE INDEX audit_log_metered_ends ON audit_log (at) WHERE pool_kind = 'capacity' AND action = 'ended';
