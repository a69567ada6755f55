-- The ledger's tables, with the columns, keys and checks of SQLite's tables. Texts are compared byte by byte.
-- Integers have 64 bits. JSON is text, kept as received.

CREATE TABLE tenants (
    id                  TEXT        COLLATE "C" NOT NULL PRIMARY KEY CHECK (id <> ''),
    created_at          TIMESTAMPTZ NOT NULL,
    -- The version of the last change of the tenant's plans and subscriptions, in commit order.
    entitlement_version BIGINT      NOT NULL DEFAULT 0 CHECK (entitlement_version >= 0),
    -- The region that assigns the homes of the tenant's subscribers; fixed at the tenant's first request among regions.
    anchor_region       BIGINT      CHECK (anchor_region BETWEEN 1 AND 255)
);

-- Licenses: the seat limits of license pools. Never deleted.
CREATE TABLE licenses (
    id            UUID        NOT NULL PRIMARY KEY,
    tenant_id     TEXT        COLLATE "C" NOT NULL REFERENCES tenants (id),
    license_key   TEXT        COLLATE "C" NOT NULL CHECK (length(license_key) BETWEEN 1 AND 255),
    max_seats     BIGINT      NOT NULL CHECK (max_seats BETWEEN 0 AND 4294967295),
    status        TEXT        NOT NULL CHECK (status IN ('active', 'suspended', 'revoked')),
    expires_at    TIMESTAMPTZ,
    count_per     TEXT        NOT NULL CHECK (count_per IN ('machine', 'user', 'process')),
    clients       TEXT        NOT NULL CHECK (clients IN ('token', 'key')),
    ttl_seconds   BIGINT      CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    grace_seconds BIGINT      NOT NULL CHECK (grace_seconds BETWEEN 0 AND 4294967295),
    reacquire     TEXT        NOT NULL CHECK (reacquire IN ('expired_only', 'never')),
    contact       TEXT,
    version       BIGINT      NOT NULL CHECK (version >= 1),
    created_at    TIMESTAMPTZ NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    UNIQUE (tenant_id, license_key)
);

CREATE INDEX licenses_by_tenant ON licenses (tenant_id, id);

-- The audit log: a row for each change of a pool's sessions (stream 'session', numbered by the registry), of
-- the pool's entitlement (stream 'entitlement') or of a plan (stream 'plan', under the plan's name).
-- Decisions of a node alone, while a registry or the home of a subscriber is unreachable, form stream 'node'.
CREATE TABLE audit_log (
    id                BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                TIMESTAMPTZ NOT NULL,
    tenant_id         TEXT        COLLATE "C" NOT NULL,
    pool_kind         TEXT        COLLATE "C" NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
    pool_id           TEXT        COLLATE "C" NOT NULL,
    stream            TEXT        COLLATE "C" NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan', 'node')),
    seq               BIGINT      NOT NULL CHECK (seq >= 1),
    epoch             BIGINT      NOT NULL CHECK (epoch >= 0),
    action            TEXT        COLLATE "C" NOT NULL,
    session_id        UUID,
    holder            TEXT        COLLATE "C",
    actor             TEXT        NOT NULL,
    request_id        TEXT,
    reason            TEXT,
    limit_seats       BIGINT      NOT NULL CHECK (limit_seats >= 0),
    limit_version     BIGINT      NOT NULL CHECK (limit_version >= 0),
    live              BIGINT      CHECK (live >= 0),
    count             BIGINT      NOT NULL CHECK (count >= 1),
    folded            BOOLEAN     NOT NULL,
    user_id           TEXT,
    tier              BIGINT      CHECK (tier BETWEEN 0 AND 255),
    ip                TEXT,
    user_agent        TEXT,
    metadata          TEXT,
    device_type       TEXT,
    device_name       TEXT,
    ttl_ms            BIGINT      CHECK (ttl_ms >= 0),
    last_heartbeat_at TIMESTAMPTZ,
    expires_at        TIMESTAMPTZ,
    detail            TEXT,
    UNIQUE (tenant_id, pool_kind, pool_id, stream, seq),
    CHECK ((stream = 'session') = (live IS NOT NULL)),
    CHECK (action NOT IN ('admitted', 'ended') OR session_id IS NOT NULL),
    CHECK (device_name IS NULL OR device_type IS NOT NULL)
);

CREATE INDEX audit_log_by_session ON audit_log (session_id) WHERE session_id IS NOT NULL;
-- `id > 0` is true of every row. The condition hides the index from statements without the condition.
-- Otherwise, without statistics of a young table, the planner would look up a pool's records by tenant and
-- read the whole tenant.
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, id) WHERE id > 0;
-- Most records begin or end a session, so a small index finds the other actions of a tenant.
CREATE INDEX audit_log_by_action ON audit_log (tenant_id, action, id) WHERE action NOT IN ('admitted', 'ended');
-- For verification: the limits granted by plans at each version.
CREATE INDEX audit_log_of_plans ON audit_log (tenant_id, pool_id, seq) WHERE stream = 'plan';
-- The records of each stream by time, for the latest time on record. Retention reads the streams of sessions and of nodes:
-- an index of all records would lead the purge through the records that stay for ever. `id > 0` hides the indexes from the
-- statements of a pool, as above.
CREATE INDEX audit_log_of_sessions_by_time ON audit_log (at) WHERE stream = 'session' AND id > 0;
CREATE INDEX audit_log_of_nodes_by_time ON audit_log (at, id) WHERE stream = 'node' AND id > 0;
CREATE INDEX audit_log_of_plans_by_time ON audit_log (at) WHERE stream = 'plan' AND id > 0;
-- The reconciler also reads the newest changes of entitlements, and applies them to live sessions.
CREATE INDEX audit_log_of_entitlements ON audit_log (at) WHERE stream = 'entitlement';
-- Sessions that ended after the start of a usage window.
CREATE INDEX audit_log_metered_ends ON audit_log (at) WHERE pool_kind = 'capacity' AND action = 'ended';

CREATE FUNCTION refuse_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END;
$$;

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The cut of a pool's session stream: retention deleted the records up to `seq`, except for the admissions of
-- the `live` sessions live at the cut.
CREATE TABLE audit_cuts (
    tenant_id TEXT   COLLATE "C" NOT NULL,
    pool_kind TEXT   COLLATE "C" NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
    pool_id   TEXT   COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL CHECK (seq >= 1),
    live      BIGINT NOT NULL CHECK (live >= 0),
    PRIMARY KEY (tenant_id, pool_kind, pool_id)
);

-- The head of each stream of the audit log, except for stream 'node': the last sequence number. Heads reveal
-- records missing at the end of a stream. A trigger moves the heads in the appending transaction, a row for
-- each pool of a batch. The fill factor leaves room on each page for a head's new row beside the old row, so
-- no index is touched.
CREATE TABLE audit_heads (
    tenant_id TEXT   COLLATE "C" NOT NULL,
    pool_kind TEXT   COLLATE "C" NOT NULL,
    pool_id   TEXT   COLLATE "C" NOT NULL,
    stream    TEXT   COLLATE "C" NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan')),
    seq       BIGINT NOT NULL CHECK (seq >= 1),
    PRIMARY KEY (tenant_id, pool_kind, pool_id, stream)
) WITH (fillfactor = 70);

CREATE FUNCTION move_audit_heads() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
    SELECT tenant_id, pool_kind, pool_id, stream, MAX(seq)
    FROM appended
    WHERE stream <> 'node'
    GROUP BY tenant_id, pool_kind, pool_id, stream
    -- A fixed order of rows prevents deadlocks between appending transactions.
    ORDER BY tenant_id, pool_kind, pool_id, stream
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream) DO UPDATE SET seq = excluded.seq
    WHERE excluded.seq > audit_heads.seq;
    RETURN NULL;
END;
$$;

CREATE TRIGGER audit_log_moves_heads AFTER INSERT ON audit_log REFERENCING NEW TABLE AS appended
FOR EACH STATEMENT EXECUTE FUNCTION move_audit_heads();

-- Bytes of a UUID, for SQL shared with SQLite, whose UUIDs are 16 bytes.
CREATE FUNCTION substr(UUID, INTEGER, INTEGER) RETURNS BYTEA LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
    'SELECT pg_catalog.substr(pg_catalog.uuid_send($1), $2, $3)';

-- A projection of the audit log, except for `last_heartbeat_at`: heartbeats are not events. The fill factor
-- leaves room on each page for a heartbeat's new row beside the old row, so no index is touched.
CREATE TABLE sessions (
    id                UUID        NOT NULL PRIMARY KEY,
    tenant_id         TEXT        COLLATE "C" NOT NULL,
    pool_kind         TEXT        COLLATE "C" NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
    pool_id           TEXT        COLLATE "C" NOT NULL,
    holder            TEXT        COLLATE "C" NOT NULL,
    user_id           TEXT        COLLATE "C" NOT NULL,
    tier              BIGINT      NOT NULL CHECK (tier BETWEEN 0 AND 255),
    started_at        TIMESTAMPTZ NOT NULL,
    last_heartbeat_at TIMESTAMPTZ NOT NULL,
    ttl_ms            BIGINT      NOT NULL CHECK (ttl_ms >= 0),
    expires_at        TIMESTAMPTZ NOT NULL,
    ended_at          TIMESTAMPTZ,
    end_reason        TEXT        CHECK (end_reason IN ('released', 'expired', 'evicted', 'superseded',
                                                        'upgraded', 'revoked', 'entitlement_ended', 'group_content', 'moved')),
    ip                TEXT        COLLATE "C",
    user_agent        TEXT,
    metadata          TEXT,
    device_type       TEXT,
    device_name       TEXT,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK (device_name IS NULL OR device_type IS NOT NULL)
) WITH (fillfactor = 70);

-- The most selective column comes first, because columns are compared in order.
CREATE INDEX sessions_by_tenant ON sessions (tenant_id, id);
CREATE INDEX sessions_by_pool ON sessions (tenant_id, pool_kind, pool_id, id);
CREATE INDEX sessions_by_holder ON sessions (holder, tenant_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, tenant_id, id);
CREATE INDEX sessions_by_ip ON sessions (ip, tenant_id, id) WHERE ip IS NOT NULL;
CREATE UNIQUE INDEX sessions_live ON sessions (tenant_id, pool_kind, pool_id, holder) WHERE ended_at IS NULL;
-- The eighth byte of the id is the bucket.
CREATE INDEX sessions_live_by_bucket ON sessions (substr(id, 8, 1), id) WHERE ended_at IS NULL;
-- Live sessions in the order of the batches of a usage window.
CREATE INDEX sessions_metered_live ON sessions (tenant_id, id) WHERE pool_kind = 'capacity' AND ended_at IS NULL;

-- The live sessions on record, at most one per holder of a pool.
CREATE VIEW live_sessions AS
SELECT substr(id, 8, 1) AS bucket, id AS session_id, tenant_id, pool_kind, pool_id, holder
FROM sessions
WHERE ended_at IS NULL;

-- No statement changes these columns. The check is an AFTER trigger, because a BEFORE trigger would lock row
-- by row.
CREATE FUNCTION refuse_change_of_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the owner of a session never changes, and an ended session stays ended';
END;
$$;

CREATE TRIGGER sessions_stay AFTER UPDATE OF id, tenant_id, pool_kind, pool_id, holder ON sessions
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_session();

CREATE TRIGGER sessions_stay_over AFTER UPDATE OF ended_at ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL) EXECUTE FUNCTION refuse_change_of_session();

CREATE TABLE buckets (
    id                BIGINT NOT NULL PRIMARY KEY CHECK (id BETWEEN 0 AND 255),
    epoch             BIGINT NOT NULL CHECK (epoch >= 0),
    mode              TEXT   NOT NULL CHECK (mode IN ('registry', 'deny', 'ledger', 'allow')),
    registry_identity TEXT,
    -- The ledger in which the epoch was raised (`this_ledger`). A promoted standby or a restored backup has
    -- rows from a different ledger, which may have gone on without the copy: the copy must raise every
    -- bucket.
    ledger_identity   TEXT,
    -- The epoch whose journal is not replayed yet, and its mode, which names the registry with the journal. NULL once
    -- the journal is replayed. Until then no registry serves the bucket's epoch, and each further raise keeps the
    -- columns: a rebuild that breaks off leaves the journal to the next rebuild.
    unreplayed_epoch  BIGINT CHECK (unreplayed_epoch < epoch),
    unreplayed_mode   TEXT   CHECK (unreplayed_mode IN ('registry', 'deny', 'ledger', 'allow')),
    -- The lowest fallback mode of the epochs between `unreplayed_epoch` and the bucket's epoch, if any: in such a mode
    -- nodes renew sessions without a registry, although the rebuild broke off.
    lower_mode        TEXT   CHECK (lower_mode IN ('deny', 'ledger', 'allow')),
    CHECK ((unreplayed_epoch IS NULL) = (unreplayed_mode IS NULL)),
    CHECK (unreplayed_epoch IS NOT NULL OR lower_mode IS NULL)
) WITH (fillfactor = 50);

INSERT INTO buckets (id, epoch, mode) SELECT number, 0, 'registry' FROM generate_series(0, 255) AS number;

-- The identity of the ledger: the database cluster, its timeline, and the object id of the table. A promotion
-- and a recovery to a point in time change the timeline; a restore creates a new table. If a service hides
-- its timeline, the other two parts identify the ledger.
CREATE FUNCTION ledger_timeline() RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION
    WHEN feature_not_supported OR insufficient_privilege OR object_not_in_prerequisite_state THEN RETURN 'hidden';
END
$$;

CREATE VIEW this_ledger AS
SELECT format('%s/%s/%s', (pg_control_system()).system_identifier, ledger_timeline(), 'buckets'::regclass::oid) AS identity;

-- The serving nodes.
CREATE TABLE nodes (
    id          UUID        NOT NULL PRIMARY KEY,
    name        TEXT        NOT NULL,
    seen_at     TIMESTAMPTZ NOT NULL,
    -- The buckets whose registry the node cannot reach, a bit per bucket. The lowest bit of the first byte is
    -- bucket 0.
    unreachable BYTEA       NOT NULL CHECK (length(unreachable) = 32),
    -- The nodes without whose word this node extends no lease, 16 bytes each. Empty for a node without a lease,
    -- and for a node that extends no lease.
    named       BYTEA       NOT NULL CHECK (length(named) % 16 = 0)
) WITH (fillfactor = 50);

-- The node rebuilding a bucket. A lock only saves double work: any node may take an expired lock.
CREATE TABLE bucket_locks (
    bucket       BIGINT      NOT NULL PRIMARY KEY CHECK (bucket BETWEEN 0 AND 255),
    locked_by    UUID        NOT NULL,
    locked_at    TIMESTAMPTZ NOT NULL,
    locked_until TIMESTAMPTZ NOT NULL
);

-- The keys of release codes, shared by all nodes: the newest and its predecessor.
CREATE TABLE release_keys (
    generation BIGINT      NOT NULL PRIMARY KEY CHECK (generation >= 1),
    secret     BYTEA       NOT NULL CHECK (length(secret) = 32),
    made_at    TIMESTAMPTZ NOT NULL
);

-- The home region of each subscriber known here. The version rises with every move of the home. Only a region whose own
-- ledger says 'here' with the region's own number opens the subscriber's pool. A home on its way to `region` is 'moving'
-- in the region that it leaves, and 'moved' once `region` has taken over. `seq` is the number of the pool's last event
-- when the move began.
CREATE TABLE homes (
    tenant_id TEXT        COLLATE "C" NOT NULL,
    user_id   TEXT        COLLATE "C" NOT NULL CHECK (user_id <> ''),
    region    BIGINT      NOT NULL CHECK (region BETWEEN 1 AND 255),
    version   BIGINT      NOT NULL CHECK (version >= 1),
    state     TEXT        NOT NULL CHECK (state IN ('here', 'moving', 'moved')),
    since     TIMESTAMPTZ NOT NULL,
    seq       BIGINT      CHECK (seq >= 0),
    -- An adopted home admits nobody before this time.
    admits_from TIMESTAMPTZ,
    PRIMARY KEY (tenant_id, user_id),
    CHECK (state = 'here' OR seq IS NOT NULL)
);

CREATE INDEX homes_moving ON homes (tenant_id, user_id) WHERE state = 'moving';
-- Every node keeps the homes that have moved in memory, and reads the changes in this order.
CREATE INDEX homes_moved ON homes (since, tenant_id, user_id) WHERE version > 1;
-- For the end of an adoption: pages of the homes in a lost region.
CREATE INDEX homes_in_region ON homes (region, tenant_id, user_id);
-- Peer regions read the homes in this region, in the order of the last change.
CREATE INDEX homes_here ON homes (region, since, tenant_id, user_id) WHERE state = 'here';

-- The position up to which a peer region has told its homes, in the order of the peer. A restored ledger has an older
-- position, asks from there, and so learns forgotten homes.
CREATE TABLE learnt_homes (
    region    BIGINT      NOT NULL PRIMARY KEY CHECK (region BETWEEN 1 AND 255),
    since     TIMESTAMPTZ NOT NULL,
    tenant_id TEXT        COLLATE "C" NOT NULL,
    user_id   TEXT        COLLATE "C" NOT NULL
);

-- The moves of homes into this region and out of this region. A home 'adopted' comes from a lost region. `seq` is the
-- number of the pool's last event in this region at the move. `peer_seq` is the last number in the region that an arrived
-- home left: the pool's audit trail continues from there. An adopted home has none if no restored ledger was read for it.
-- A record 'forgotten' stands beside 'left' if a restored ledger did not know the move: the move began again after event
-- `seq`.
CREATE TABLE home_moves (
    tenant_id TEXT        COLLATE "C" NOT NULL,
    user_id   TEXT        COLLATE "C" NOT NULL,
    version   BIGINT      NOT NULL CHECK (version >= 2),
    direction TEXT        NOT NULL CHECK (direction IN ('arrived', 'left', 'adopted', 'forgotten')),
    peer      BIGINT      NOT NULL CHECK (peer BETWEEN 1 AND 255),
    seq       BIGINT      NOT NULL CHECK (seq >= 0),
    peer_seq  BIGINT      CHECK (peer_seq >= 0),
    at        TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, user_id, version, direction),
    CHECK (direction = 'adopted' OR (direction <> 'arrived') = (peer_seq IS NULL))
);

-- The region of the ledger: fixed by the first server with regions. `deployment_id` is random, and tells the deployment from
-- rivals with the same number. `is_confirmed`: the number was used without peers, or a peer has accepted the deployment.
-- `refused_by`: a peer that knows a rival. `is_disputed`: a further peer accepts the deployment.
CREATE TABLE own_region (
    id            BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    region        BIGINT NOT NULL CHECK (region BETWEEN 1 AND 255),
    deployment_id UUID NOT NULL,
    is_confirmed  BIGINT NOT NULL CHECK (is_confirmed IN (0, 1)),
    refused_by    BIGINT CHECK (refused_by BETWEEN 1 AND 255),
    is_disputed   BIGINT NOT NULL CHECK (is_disputed IN (0, 1))
);

-- The first known deployment of each peer region. A rival with the same number is refused.
CREATE TABLE peer_deployments (
    region        BIGINT NOT NULL PRIMARY KEY CHECK (region BETWEEN 1 AND 255),
    deployment_id UUID NOT NULL
);

-- Regions lost for good, each with the successor of its pools. The successor admits nobody to the lost region's pools before
-- `admits_from`, and serves all pools once the adoption is done. A later begin moves `admits_from`. Every
-- home taken over since the first begin is on record with `first_admits_from` or a later time. `audit_head` is the last
-- audit record of this ledger at the begin of the adoption: the restored ledger of the lost region has no later admission.
CREATE TABLE region_adoptions (
    lost        BIGINT NOT NULL PRIMARY KEY CHECK (lost BETWEEN 1 AND 255),
    successor   BIGINT NOT NULL CHECK (successor BETWEEN 1 AND 255 AND successor <> lost),
    admits_from TIMESTAMPTZ NOT NULL,
    first_admits_from TIMESTAMPTZ NOT NULL,
    is_done     BIGINT NOT NULL CHECK (is_done IN (0, 1)),
    audit_head  BIGINT NOT NULL CHECK (audit_head >= 0),
    at          TIMESTAMPTZ NOT NULL
);

-- The homes, each with the time before which the home admits nobody by now: a later begin of an adoption moves the time for
-- every home taken over since the first begin, without a write to the homes.
CREATE VIEW known_homes AS
SELECT
    tenant_id, user_id, region, version, state, since, seq,
    COALESCE((
        SELECT MAX(a.admits_from) FROM region_adoptions AS a
        WHERE a.successor = homes.region AND a.first_admits_from <= homes.admits_from AND a.admits_from > homes.admits_from
    ), admits_from) AS admits_from
FROM homes;

-- Sessions of a license on their way from a lost region. One transaction admits the sessions of a license, after the last has
-- arrived: a restart opens no pool with a part of its sessions. `record` is the session with its particulars, as JSON.
CREATE TABLE arriving_sessions (
    session_id UUID NOT NULL PRIMARY KEY,
    lost       BIGINT NOT NULL CHECK (lost BETWEEN 1 AND 255),
    tenant_id  TEXT COLLATE "C" NOT NULL,
    pool_kind  TEXT COLLATE "C" NOT NULL CHECK (pool_kind = 'license'),
    pool_id    TEXT COLLATE "C" NOT NULL,
    record     TEXT NOT NULL,
    last_heartbeat_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX arriving_sessions_by_pool
    ON arriving_sessions (tenant_id, pool_kind, pool_id, last_heartbeat_at, session_id);

-- The answer to each write with an `Idempotency-Key`.
CREATE TABLE idempotency_keys (
    tenant_id       TEXT        COLLATE "C" NOT NULL,
    idempotency_key TEXT        COLLATE "C" NOT NULL,
    request_hash    BYTEA       NOT NULL,
    entity_kind     TEXT        NOT NULL CHECK (entity_kind IN ('license', 'plan', 'subscription')),
    entity_id       TEXT        NOT NULL,
    -- The pool of a license or a subscription: the answers go along with the pool to another region.
    pool_id         TEXT        COLLATE "C",
    answer          TEXT        NOT NULL,
    at              TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
);

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
CREATE INDEX idempotency_keys_by_pool ON idempotency_keys (tenant_id, pool_id);

-- Plans. Never deleted. A built-in plan has version 0 until its first change.
CREATE TABLE plans (
    tenant_id    TEXT        COLLATE "C" NOT NULL REFERENCES tenants (id),
    name         TEXT        COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    device_limit BIGINT      NOT NULL CHECK (device_limit BETWEEN 0 AND 4294967295),
    price_cents  BIGINT      NOT NULL CHECK (price_cents BETWEEN 0 AND 4294967295),
    when_full    TEXT        NOT NULL CHECK (when_full IN ('evict', 'deny')),
    ttl_seconds  BIGINT      CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    -- The rules of groups that watch together; 0 members: no groups.
    group_members_max  BIGINT  NOT NULL DEFAULT 0 CHECK (group_members_max BETWEEN 0 AND 8),
    group_scope        TEXT    NOT NULL DEFAULT 'same_user' CHECK (group_scope IN ('same_user', 'any_user')),
    group_same_content BOOLEAN NOT NULL DEFAULT FALSE,
    status       TEXT        NOT NULL CHECK (status IN ('active', 'retired')),
    version      BIGINT      NOT NULL CHECK (version >= 0),
    created_at   TIMESTAMPTZ NOT NULL,
    updated_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, name)
);

-- Every tenant has the built-in plans from the start.
CREATE FUNCTION add_built_in_plans() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO plans (tenant_id, name, device_limit, price_cents, when_full, status, version, created_at, updated_at)
    VALUES
        (NEW.id, 'basic', 1, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'standard', 2, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'premium', 4, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at);
    RETURN NULL;
END;
$$;

CREATE TRIGGER tenants_have_plans AFTER INSERT ON tenants
FOR EACH ROW EXECUTE FUNCTION add_built_in_plans();

-- The content that members of groups watch, if their plan demands the same content of all. Without `content_id` the member
-- named none. `differs_since` is set while the content differs from the host's.
CREATE TABLE group_contents (
    session_id    UUID        NOT NULL PRIMARY KEY,
    content_id    TEXT,
    differs_since TIMESTAMPTZ,
    at            TIMESTAMPTZ NOT NULL
);

CREATE INDEX group_contents_by_time ON group_contents (at);

-- Subscriptions. Never deleted. A user's newest subscription has the greatest version.
CREATE TABLE subscriptions (
    id         UUID        NOT NULL PRIMARY KEY,
    tenant_id  TEXT        COLLATE "C" NOT NULL,
    user_id    TEXT        COLLATE "C" NOT NULL CHECK (user_id <> ''),
    plan       TEXT        COLLATE "C" NOT NULL,
    status     TEXT        NOT NULL CHECK (status IN ('active', 'cancelled', 'expired')),
    starts_at  TIMESTAMPTZ NOT NULL,
    ends_at    TIMESTAMPTZ CHECK (ends_at > starts_at),
    version    BIGINT      NOT NULL CHECK (version >= 1),
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    FOREIGN KEY (tenant_id, plan) REFERENCES plans (tenant_id, name)
);

CREATE UNIQUE INDEX subscriptions_active ON subscriptions (tenant_id, user_id) WHERE status = 'active';
CREATE INDEX subscriptions_by_user ON subscriptions (tenant_id, user_id, version);
CREATE INDEX subscriptions_by_tenant ON subscriptions (tenant_id, id);
CREATE INDEX subscriptions_by_plan ON subscriptions (tenant_id, plan, id);

-- Periodic jobs, each run by one worker at a time.
CREATE TABLE jobs (
    name          TEXT        COLLATE "C" NOT NULL PRIMARY KEY CHECK (name <> ''),
    interval_ms   BIGINT      NOT NULL CHECK (interval_ms >= 1),
    -- The scheduled time of the due run or the current run. Later runs follow on the grid `next_run_at` + k *
    -- `interval_ms`.
    next_run_at   TIMESTAMPTZ NOT NULL,
    -- The due time overriding `next_run_at`, after a failure or an operator's request.
    retry_at      TIMESTAMPTZ,
    last_run_at   TIMESTAMPTZ,
    locked_by     TEXT        CHECK (locked_by <> ''),
    -- The lock's last heartbeat.
    locked_at     TIMESTAMPTZ,
    -- The time when the lock becomes stale, and a different worker may take the job.
    locked_until  TIMESTAMPTZ,
    -- The number of the latest run, one more for each run.
    fencing_token BIGINT      NOT NULL CHECK (fencing_token >= 0),
    -- Consecutive failed or lost runs, and the error of the last failed run.
    failures      BIGINT      NOT NULL CHECK (failures >= 0),
    last_error    TEXT,
    CHECK ((locked_by IS NULL) = (locked_at IS NULL)),
    CHECK ((locked_by IS NULL) = (locked_until IS NULL)),
    CHECK (locked_by IS NULL OR fencing_token >= 1)
) WITH (fillfactor = 50);

-- The run history, a row per run.
CREATE TABLE job_runs (
    job           TEXT        COLLATE "C" NOT NULL REFERENCES jobs (name),
    fencing_token BIGINT      NOT NULL CHECK (fencing_token >= 1),
    worker        TEXT        NOT NULL CHECK (worker <> ''),
    scheduled_at  TIMESTAMPTZ NOT NULL,
    started_at    TIMESTAMPTZ NOT NULL,
    finished_at   TIMESTAMPTZ,
    outcome       TEXT        NOT NULL CHECK (outcome IN ('running', 'succeeded', 'failed', 'lost')),
    error         TEXT,
    PRIMARY KEY (job, fencing_token),
    CHECK ((outcome = 'running') = (finished_at IS NULL)),
    CHECK ((outcome = 'failed') = (error IS NOT NULL))
);

-- The usage windows on record, without a gap: a window starts at the end of the previous window. Usage in a
-- window can be recomputed from `sessions` at any time. Only a window without records crosses a midnight (UTC).
CREATE TABLE usage_windows (
    starts_at   TIMESTAMPTZ NOT NULL PRIMARY KEY,
    ends_at     TIMESTAMPTZ NOT NULL UNIQUE,
    records     BIGINT      NOT NULL CHECK (records >= 0),
    micro_units BIGINT      NOT NULL CHECK (micro_units >= 0),
    CHECK (starts_at < ends_at)
);

-- The ledger whose windows the sink knows (`this_ledger`), at most one row. In a promoted standby or a restored
-- backup the row names another ledger, which may have had further windows: no window is added until an operator
-- confirms.
CREATE TABLE usage_ledger (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    identity TEXT    NOT NULL
);

-- Usage batches on their way to the sink, each of one tenant. A batch counts once its window is in
-- `usage_windows`. Until then the batch is staged, and the emission may still be interrupted.
CREATE TABLE usage_outbox (
    id               UUID        NOT NULL PRIMARY KEY,
    window_starts_at TIMESTAMPTZ NOT NULL,
    tenant_id        TEXT        COLLATE "C" NOT NULL,
    batch            BIGINT      NOT NULL CHECK (batch >= 1),
    records          BIGINT      NOT NULL CHECK (records >= 1),
    micro_units      BIGINT      NOT NULL CHECK (micro_units >= 1),
    state            TEXT        COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts         BIGINT      NOT NULL CHECK (attempts >= 0),
    -- The sink's last answers in a row with status 404.
    not_found        BIGINT      NOT NULL CHECK (not_found >= 0),
    -- 1: an attempt was sent and got no clear answer, so the sink may have the batch.
    may_be_stored    BIGINT      NOT NULL CHECK (may_be_stored IN (0, 1)),
    next_attempt_at  TIMESTAMPTZ NOT NULL,
    last_status      BIGINT      CHECK (last_status BETWEEN 100 AND 999),
    last_error       TEXT,
    delivered_at     TIMESTAMPTZ,
    UNIQUE (window_starts_at, tenant_id, batch),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
);

CREATE INDEX usage_outbox_due ON usage_outbox (next_attempt_at, id) WHERE state = 'pending';
-- Counted for the metrics.
CREATE INDEX usage_outbox_dead ON usage_outbox (window_starts_at) WHERE state = 'dead';
CREATE INDEX usage_outbox_by_tenant ON usage_outbox (tenant_id, window_starts_at, batch);
CREATE INDEX usage_outbox_by_state ON usage_outbox (tenant_id, state, window_starts_at, batch);

-- The payload of a batch, until the sink acknowledges the batch. A separate table saves rewriting the payload
-- at each failed attempt.
CREATE TABLE usage_payloads (
    batch_id UUID NOT NULL PRIMARY KEY REFERENCES usage_outbox (id),
    payload  TEXT NOT NULL
);

-- Copies of the ledger that took its place: promoted standbys and restored backups, each noted with the first
-- raise of an epoch or the first change of an entitlement. A copy may lack the latest records, licenses and plans among
-- them. The versions of changes made in a copy start at `version_floor`.
CREATE TABLE ledger_copies (
    identity      TEXT        NOT NULL PRIMARY KEY,
    noted_at      TIMESTAMPTZ NOT NULL,
    version_floor BIGINT      NOT NULL CHECK (version_floor > 0)
);

CREATE TRIGGER ledger_copies_stay BEFORE UPDATE OR DELETE ON ledger_copies
FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- Repairs of registry time by an operator. Audit records up to `audit_head` may be dated up to `wrong_until`;
-- later records are dated from `repaired_at` on.
CREATE TABLE clock_repairs (
    id          BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repaired_at TIMESTAMPTZ NOT NULL,
    wrong_until TIMESTAMPTZ NOT NULL,
    audit_head  BIGINT      NOT NULL CHECK (audit_head >= 0),
    actor       TEXT        COLLATE "C" NOT NULL CHECK (actor <> ''),
    sessions    BIGINT      NOT NULL CHECK (sessions >= 0),
    CHECK (repaired_at < wrong_until)
);

CREATE TRIGGER clock_repairs_stay BEFORE UPDATE OR DELETE ON clock_repairs
FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The latest registry time that destructive jobs and usage windows may go by, at most one row. Follows the clock
-- in small steps. A large step, by a wrong clock or after a long outage, needs an operator.
CREATE TABLE trusted_time (
    id INTEGER     NOT NULL PRIMARY KEY CHECK (id = 1),
    at TIMESTAMPTZ NOT NULL
);
