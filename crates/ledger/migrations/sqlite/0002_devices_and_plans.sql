-- Devices hold seats, too, and plans have a record of their own: a third stream, for each plan of a
-- tenant one, numbered by its changes, under the kind of pool that it is for and the plan's name.
-- SQLite cannot change a CHECK, so the table is made anew.

CREATE TABLE audit_log_2 (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    at                TEXT    NOT NULL,
    tenant_id         TEXT    NOT NULL,
    pool_kind         TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity')),
    pool_id           TEXT    NOT NULL,
    stream            TEXT    NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan')),
    seq               INTEGER NOT NULL CHECK (seq >= 1),
    epoch             INTEGER NOT NULL CHECK (epoch >= 0),
    action            TEXT    NOT NULL,
    session_id        BLOB    CHECK (length(session_id) = 16),
    holder            TEXT,
    actor             TEXT    NOT NULL,
    request_id        TEXT,
    reason            TEXT,
    limit_seats       INTEGER NOT NULL CHECK (limit_seats >= 0),
    limit_version     INTEGER NOT NULL CHECK (limit_version >= 0),
    live              INTEGER CHECK (live >= 0),
    count             INTEGER NOT NULL CHECK (count >= 1),
    folded            INTEGER NOT NULL CHECK (folded IN (0, 1)),
    user_id           TEXT,
    tier              INTEGER CHECK (tier BETWEEN 0 AND 255),
    ip                TEXT,
    user_agent        TEXT,
    metadata          TEXT,
    device_type       TEXT,
    device_name       TEXT,
    ttl_ms            INTEGER CHECK (ttl_ms >= 0),
    last_heartbeat_at TEXT,
    expires_at        TEXT,
    detail            TEXT,
    UNIQUE (tenant_id, pool_kind, pool_id, stream, seq),
    CHECK ((stream = 'session') = (live IS NOT NULL)),
    CHECK (action NOT IN ('admitted', 'ended') OR session_id IS NOT NULL),
    CHECK (device_name IS NULL OR device_type IS NOT NULL)
) STRICT;

INSERT INTO audit_log_2 (
    id, at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor,
    request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
    user_agent, metadata, ttl_ms, last_heartbeat_at, expires_at, detail
)
SELECT
    id, at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor,
    request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
    user_agent, metadata, ttl_ms, last_heartbeat_at, expires_at, detail
FROM audit_log
ORDER BY id;

DROP TABLE audit_log;
ALTER TABLE audit_log_2 RENAME TO audit_log;

CREATE INDEX audit_log_by_session ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, id);
CREATE INDEX audit_log_by_action ON audit_log (tenant_id, action, id);
-- For retention, and for the latest time on record.
CREATE INDEX audit_log_by_time ON audit_log (at);

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

ALTER TABLE sessions ADD COLUMN device_type TEXT;
ALTER TABLE sessions ADD COLUMN device_name TEXT CHECK (device_name IS NULL OR device_type IS NOT NULL);
