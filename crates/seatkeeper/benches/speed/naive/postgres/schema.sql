-- A thousand licenses, the sessions of each, and the audit log.
CREATE TABLE licenses (key text PRIMARY KEY);
INSERT INTO licenses SELECT 'naive-' || n FROM generate_series(0, 999) AS n;
CREATE TABLE sessions (
    id         uuid PRIMARY KEY,
    license    text NOT NULL,
    machine    text NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz
);
CREATE UNIQUE INDEX sessions_live ON sessions (license, machine) WHERE ended_at IS NULL;
CREATE TABLE audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    session_id uuid NOT NULL,
    action     text NOT NULL
);
CREATE INDEX audit_log_by_session ON audit_log (session_id);
