-- Live sessions of pools, and the journal of what happened to them.
--
-- Times are milliseconds since the Unix epoch, spans are milliseconds. All rows of a bucket change together:
-- whoever changes any of them, heartbeats apart, holds the bucket's row in registry.buckets.

-- The buckets that pools are spread over. Their number never changes, for every session id carries one.
CREATE TABLE registry.buckets (
    bucket smallint PRIMARY KEY,
    -- Which filling of the bucket this is, and whether it may be served.
    epoch bigint NOT NULL DEFAULT 0,
    serving boolean NOT NULL DEFAULT false,
    -- The latest time at which anything changed: the clock is never read as earlier.
    latest bigint NOT NULL DEFAULT 0,
    -- How many events the journal held in this epoch.
    position bigint NOT NULL DEFAULT 0,
    -- Changed by whoever needs to know that no change is under way: a change that has not taken the row before
    -- fails.
    fence bigint NOT NULL DEFAULT 0,
    -- The epoch for which the bucket was emptied and filled: every event of its journal was decided in this epoch.
    filled_for bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

INSERT INTO registry.buckets (bucket) SELECT generate_series(0, 255);
-- A second section of buckets, for sessions that last without heartbeats. No fault of the first section touches it: it is
-- served from the beginning, always in epoch 1, and never rebuilt.
INSERT INTO registry.buckets (bucket, epoch, serving, filled_for)
SELECT number, 1, true, 1 FROM generate_series(256, 511) AS number;

-- How much of each journal the ledger has. Apart from registry.buckets, for the ledger's reader never waits for
-- those who change the bucket.
CREATE TABLE registry.acknowledged (
    bucket smallint PRIMARY KEY,
    position bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

INSERT INTO registry.acknowledged (bucket) SELECT generate_series(0, 511);

-- The latest time that was told to anybody who asked for nothing else: one row.
CREATE TABLE registry.told (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    latest bigint NOT NULL DEFAULT 0,
    -- Until when the clock is trusted, by the clock itself. The largest number: no node has kept the lease yet.
    trusted_until bigint NOT NULL DEFAULT 9223372036854775807
) WITH (fillfactor = 10);

INSERT INTO registry.told DEFAULT VALUES;

-- The pools that are open.
CREATE TABLE registry.pools (
    pool bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket smallint NOT NULL,
    kind text NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    -- Goes up with every change of the pool, heartbeats apart.
    revision bigint NOT NULL DEFAULT 1,
    -- The number of its last event, and where in the bucket's journal that stands.
    seq bigint NOT NULL,
    last_event bigint NOT NULL DEFAULT 0,
    -- How many rows of registry.sessions are its own.
    live integer NOT NULL,
    -- The newest terms it has seen; all null while none were.
    terms_version bigint,
    seats bigint,
    ttl bigint,
    ends_at bigint,
    closed boolean,
    -- When there is something to sweep, at the earliest. Heartbeats never make this earlier.
    due bigint NOT NULL,
    -- Since when nobody is in.
    empty_since bigint,
    -- Denials that are counted.
    denials jsonb,
    UNIQUE (tenant, name, kind)
) WITH (fillfactor = 80);

CREATE INDEX pools_due ON registry.pools (bucket, due);

-- The sessions that are live, or over and not yet ended.
CREATE TABLE registry.sessions (
    id uuid PRIMARY KEY,
    pool bigint NOT NULL,
    holder text NOT NULL,
    -- Who may renew and end it, the first first.
    users text[] NOT NULL,
    started bigint NOT NULL,
    last_heartbeat bigint NOT NULL,
    -- It is over at last_heartbeat + ttl, or when the terms end.
    ttl bigint NOT NULL,
    tier smallint NOT NULL
) WITH (fillfactor = 80);

-- A holder has one session in a pool. An expression of both, so that each question has one index that can answer it
-- and no plan can take another, whatever the statistics say at the time.
CREATE UNIQUE INDEX sessions_by_holder ON registry.sessions ((pool || '/' || holder));

-- Who is over, who is the stalest, who comes next: each without a look at the others, for it holds the whole order
-- of eviction. A heartbeat writes to it, and costs a tenth more for it.
CREATE INDEX sessions_by_silence ON registry.sessions (pool, ttl, last_heartbeat, started, id);

-- What happened, until the ledger has it.
CREATE TABLE registry.journal (
    bucket smallint,
    position bigint,
    event text NOT NULL,
    PRIMARY KEY (bucket, position)
);
