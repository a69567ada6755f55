-- The sessions of each license, and the audit log.
CREATE TABLE sessions (
    id         BLOB NOT NULL PRIMARY KEY,
    license    TEXT NOT NULL,
    machine    TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at   TEXT
) STRICT;

CREATE UNIQUE INDEX sessions_live ON sessions (license, machine) WHERE ended_at IS NULL;

CREATE TABLE audit_log (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         TEXT NOT NULL,
    session_id BLOB NOT NULL,
    action     TEXT NOT NULL
) STRICT;

CREATE INDEX audit_log_by_session ON audit_log (session_id);
