-- The ledger's tables. Times are registry times as RFC 3339 text in UTC with the offset "+00:00",
-- which sorts as the times do; UUIDs are 16 bytes; JSON is text.

CREATE TABLE tenants (
    id         TEXT NOT NULL PRIMARY KEY CHECK (id <> ''),
    created_at TEXT NOT NULL
) STRICT;

-- What gives a license pool its limit. Never deleted.
CREATE TABLE licenses (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id   TEXT    NOT NULL REFERENCES tenants (id),
    license_key TEXT    NOT NULL CHECK (length(license_key) BETWEEN 1 AND 255),
    max_seats   INTEGER NOT NULL CHECK (max_seats BETWEEN 0 AND 4294967295),
    status      TEXT    NOT NULL CHECK (status IN ('active', 'suspended', 'revoked')),
    expires_at  TEXT,
    count_per   TEXT    NOT NULL CHECK (count_per IN ('machine', 'user', 'process')),
    ttl_seconds INTEGER CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    contact     TEXT,
    version     INTEGER NOT NULL CHECK (version >= 1),
    created_at  TEXT    NOT NULL,
    updated_at  TEXT    NOT NULL,
    UNIQUE (tenant_id, license_key)
) STRICT;

CREATE INDEX licenses_by_tenant ON licenses (tenant_id, id);

-- The record: one row for each change of a pool's sessions (stream 'session', numbered by the
-- registry) or of its entitlement (stream 'entitlement', numbered by the entitlement's version).
CREATE TABLE audit_log (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    at                TEXT    NOT NULL,
    tenant_id         TEXT    NOT NULL,
    pool_kind         TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity')),
    pool_id           TEXT    NOT NULL,
    stream            TEXT    NOT NULL CHECK (stream IN ('session', 'entitlement')),
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
    ttl_ms            INTEGER CHECK (ttl_ms >= 0),
    last_heartbeat_at TEXT,
    expires_at        TEXT,
    detail            TEXT,
    UNIQUE (tenant_id, pool_kind, pool_id, stream, seq),
    CHECK ((stream = 'session') = (live IS NOT NULL)),
    CHECK (action NOT IN ('admitted', 'ended') OR session_id IS NOT NULL)
) STRICT;

CREATE INDEX audit_log_by_session ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, id);
CREATE INDEX audit_log_by_action ON audit_log (tenant_id, action, id);
-- For retention, and for the latest time on record.
CREATE INDEX audit_log_by_time ON audit_log (at);

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

-- Up to where the session stream of a pool was deleted by retention. Of what stood up to `seq`, the
-- admissions of the `live` sessions that were live at that point are kept.
CREATE TABLE audit_cuts (
    tenant_id TEXT    NOT NULL,
    pool_kind TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity')),
    pool_id   TEXT    NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq >= 1),
    live      INTEGER NOT NULL CHECK (live >= 0),
    PRIMARY KEY (tenant_id, pool_kind, pool_id)
) STRICT;

-- A projection of the audit log, but for last_heartbeat_at: heartbeats are not events.
CREATE TABLE sessions (
    id                BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id         TEXT    NOT NULL,
    pool_kind         TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity')),
    pool_id           TEXT    NOT NULL,
    holder            TEXT    NOT NULL,
    user_id           TEXT    NOT NULL,
    tier              INTEGER NOT NULL CHECK (tier BETWEEN 0 AND 255),
    started_at        TEXT    NOT NULL,
    last_heartbeat_at TEXT    NOT NULL,
    ttl_ms            INTEGER NOT NULL CHECK (ttl_ms >= 0),
    expires_at        TEXT    NOT NULL,
    ended_at          TEXT,
    end_reason        TEXT CHECK (end_reason IN ('released', 'expired', 'evicted', 'superseded',
                                                 'upgraded', 'revoked', 'entitlement_ended')),
    ip                TEXT,
    user_agent        TEXT,
    metadata          TEXT,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
) STRICT;

CREATE UNIQUE INDEX sessions_live ON sessions (tenant_id, pool_kind, pool_id, holder)
    WHERE ended_at IS NULL;
CREATE INDEX sessions_by_tenant ON sessions (tenant_id, id);
CREATE INDEX sessions_by_pool ON sessions (tenant_id, pool_kind, pool_id, id);
CREATE INDEX sessions_by_holder ON sessions (tenant_id, holder, id);
CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, id);
CREATE INDEX sessions_by_ip ON sessions (tenant_id, ip, id) WHERE ip IS NOT NULL;

CREATE TABLE buckets (
    id                INTEGER NOT NULL PRIMARY KEY CHECK (id BETWEEN 0 AND 255),
    epoch             INTEGER NOT NULL CHECK (epoch >= 0),
    mode              TEXT    NOT NULL CHECK (mode IN ('registry', 'deny', 'ledger', 'allow')),
    registry_identity TEXT
) STRICT;

INSERT INTO buckets (id, epoch, mode)
WITH RECURSIVE numbers (number) AS (
    SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 255
)
SELECT number, 0, 'registry' FROM numbers;

-- What a write with an Idempotency-Key was answered.
CREATE TABLE idempotency_keys (
    tenant_id       TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash    BLOB NOT NULL,
    license_id      BLOB NOT NULL REFERENCES licenses (id),
    answer          TEXT NOT NULL,
    at              TEXT NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
) STRICT;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
