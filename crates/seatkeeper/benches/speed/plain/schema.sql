-- Licenses, their live sessions, and what happened to them.
CREATE TABLE licenses (id int PRIMARY KEY, seats int NOT NULL);
INSERT INTO licenses SELECT n, 1000 FROM generate_series(0, 999) AS n;
CREATE TABLE sessions (id uuid PRIMARY KEY, license int NOT NULL, last_heartbeat timestamptz NOT NULL);
CREATE INDEX sessions_by_license ON sessions (license);
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session uuid NOT NULL, license int NOT NULL, action text NOT NULL,
    at timestamptz NOT NULL
);
