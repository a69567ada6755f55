-- Tables of live sessions, pools, buckets, and the journal.
--
-- Times are milliseconds since the Unix epoch, spans are milliseconds. The rows of a bucket change together:
-- every change, heartbeats apart, locks the bucket's row in registry.buckets.

-- The buckets over which pools are spread. The number of buckets never changes, because every session id
-- carries its bucket.
CREATE TABLE registry.buckets (
    bucket smallint PRIMARY KEY,
    -- The epoch of the bucket's latest rebuild, and the serving state.
    epoch bigint NOT NULL DEFAULT 0,
    serving boolean NOT NULL DEFAULT false,
    -- The latest time of a change: a lower bound of the bucket's time.
    latest bigint NOT NULL DEFAULT 0,
    -- Number of events in the journal in this epoch.
    position bigint NOT NULL DEFAULT 0,
    -- A fencing token, raised to make sure that no change is under way: a change that has not locked the row
    -- before fails.
    fence bigint NOT NULL DEFAULT 0,
    -- The epoch for which the bucket was cleared and filled: every event in the journal was decided in this
    -- epoch.
    filled_for bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

INSERT INTO registry.buckets (bucket) SELECT generate_series(0, 255);
-- A second section of buckets, for sessions without heartbeats. The section is independent of faults of the
-- first: always in epoch 1, and served once filled by a node (`0009_lasting.sql`).
INSERT INTO registry.buckets (bucket, epoch, filled_for)
SELECT number, 1, 1 FROM generate_series(256, 511) AS number;

-- The acknowledged position of each journal. A separate table, so that the journal's reader never waits for
-- changes of the bucket.
CREATE TABLE registry.acknowledged (
    bucket smallint PRIMARY KEY,
    position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

INSERT INTO registry.acknowledged (bucket) SELECT generate_series(0, 511);

-- The latest time read from the registry without a step: one row. Each section has a time of its own: a rebuild carries
-- the dates of another store, whose clock may be ahead, into the first section, and must not end sessions of the second.
CREATE TABLE registry.told (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    latest bigint NOT NULL DEFAULT 0,
    latest_lasting bigint NOT NULL DEFAULT 0,
    -- End of the clock's lease, by the clock itself. The largest number: no node has kept the lease yet.
    trusted_until bigint NOT NULL DEFAULT 9223372036854775807
) WITH (fillfactor = 10);

INSERT INTO registry.told DEFAULT VALUES;

-- The open pools.
CREATE TABLE registry.pools (
    pool bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket smallint NOT NULL,
    kind text NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    -- Raised by every change of the pool, heartbeats apart.
    revision bigint NOT NULL DEFAULT 1,
    -- Number of the last event, and the event's position in the bucket's journal.
    seq bigint NOT NULL,
    last_event bigint NOT NULL DEFAULT 0,
    -- Number of the pool's rows in registry.sessions.
    live integer NOT NULL,
    -- The newest terms offered to the pool; all null while terms are unknown.
    terms_version bigint,
    seats bigint,
    ttl bigint,
    ends_at bigint,
    closed boolean,
    -- Lower bound of the time of the next sweep. Heartbeats never make the time earlier.
    due bigint NOT NULL,
    -- Start of emptiness.
    empty_since bigint,
    -- Counted denials.
    denials jsonb,
    UNIQUE (tenant, name, kind)
) WITH (fillfactor = 80);

CREATE INDEX pools_due ON registry.pools (bucket, due);

-- The sessions that are live, or over and not yet ended.
CREATE TABLE registry.sessions (
    id uuid PRIMARY KEY,
    pool bigint NOT NULL,
    holder text NOT NULL,
    -- Users who may renew and end the session, in order of joining.
    users text[] NOT NULL,
    started bigint NOT NULL,
    last_heartbeat bigint NOT NULL,
    -- The session is over at last_heartbeat + ttl, or when the terms end.
    ttl bigint NOT NULL,
    tier smallint NOT NULL
) WITH (fillfactor = 80);

-- A holder has one session in a pool. The index is on a joint expression, so that each query has one usable
-- index, and no plan can choose a different index, whatever the statistics.
CREATE UNIQUE INDEX sessions_by_holder ON registry.sessions ((pool || '/' || holder));

-- The whole order of eviction: expired, stalest and next sessions are found without a scan of further
-- sessions. A heartbeat updates the index, and costs a tenth more.
CREATE INDEX sessions_by_silence ON registry.sessions (pool, ttl, last_heartbeat, started, id);

-- Events that the ledger does not have.
CREATE TABLE registry.journal (
    bucket smallint,
    position bigint,
    event text NOT NULL,
    PRIMARY KEY (bucket, position)
);
