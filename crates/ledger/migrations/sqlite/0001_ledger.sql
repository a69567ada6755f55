-- The ledger's tables. Times are registry times as RFC 3339 text in UTC with the offset "+00:00", so the text
-- sorts by time. UUIDs are 16 bytes, and JSON is text.

CREATE TABLE tenants (
    id                  TEXT    NOT NULL PRIMARY KEY CHECK (id <> ''),
    created_at          TEXT    NOT NULL,
    -- The version of the last change of the tenant's plans and subscriptions, in commit order.
    entitlement_version INTEGER NOT NULL DEFAULT 0 CHECK (entitlement_version >= 0),
    -- The region that assigns the homes of the tenant's subscribers; fixed at the tenant's first request among regions.
    anchor_region       INTEGER CHECK (anchor_region BETWEEN 1 AND 255)
) STRICT;

-- Licenses: the seat limits of license pools. Never deleted.
CREATE TABLE licenses (
    id            BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id     TEXT    NOT NULL REFERENCES tenants (id),
    license_key   TEXT    NOT NULL CHECK (length(license_key) BETWEEN 1 AND 255),
    max_seats     INTEGER NOT NULL CHECK (max_seats BETWEEN 0 AND 4294967295),
    status        TEXT    NOT NULL CHECK (status IN ('active', 'suspended', 'revoked')),
    expires_at    TEXT,
    count_per     TEXT    NOT NULL CHECK (count_per IN ('machine', 'user', 'process')),
    clients       TEXT    NOT NULL CHECK (clients IN ('token', 'key')),
    ttl_seconds   INTEGER CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    grace_seconds INTEGER NOT NULL CHECK (grace_seconds BETWEEN 0 AND 4294967295),
    reacquire     TEXT    NOT NULL CHECK (reacquire IN ('expired_only', 'never')),
    contact       TEXT,
    version       INTEGER NOT NULL CHECK (version >= 1),
    created_at    TEXT    NOT NULL,
    updated_at    TEXT    NOT NULL,
    UNIQUE (tenant_id, license_key)
) STRICT;

CREATE INDEX licenses_by_tenant ON licenses (tenant_id, id);

-- The audit log: a row for each change of a pool's sessions (stream 'session', numbered by the registry), of
-- the pool's entitlement (stream 'entitlement') or of a plan (stream 'plan', under the plan's name).
-- Decisions of a node alone, while the home of a subscriber is unreachable, form stream 'node'.
CREATE TABLE audit_log (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    at                TEXT    NOT NULL,
    tenant_id         TEXT    NOT NULL,
    pool_kind         TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
    pool_id           TEXT    NOT NULL,
    stream            TEXT    NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan', 'node')),
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

CREATE INDEX audit_log_by_session ON audit_log (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, id);
CREATE INDEX audit_log_by_action ON audit_log (tenant_id, action, id);
-- For verification: the limits granted by plans at each version.
CREATE INDEX audit_log_of_plans ON audit_log (tenant_id, pool_id, seq) WHERE stream = 'plan';
-- The records of each stream by time, for the latest time on record. Retention reads the streams of sessions and of nodes:
-- an index of all records would lead the purge through the records that stay for ever. `id > 0` is true of every row. The
-- condition hides the indexes from statements without the condition, which would read a whole stream.
CREATE INDEX audit_log_of_sessions_by_time ON audit_log (at) WHERE stream = 'session' AND id > 0;
CREATE INDEX audit_log_of_nodes_by_time ON audit_log (at, id) WHERE stream = 'node' AND id > 0;
CREATE INDEX audit_log_of_plans_by_time ON audit_log (at) WHERE stream = 'plan' AND id > 0;
-- The reconciler also reads the newest changes of entitlements, and applies them to live sessions.
CREATE INDEX audit_log_of_entitlements ON audit_log (at) WHERE stream = 'entitlement';
-- Sessions that ended after the start of a usage window.
CREATE INDEX audit_log_metered_ends ON audit_log (at) WHERE pool_kind = 'capacity' AND action = 'ended';

CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE ON audit_log
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

-- The cut of a pool's session stream: retention deleted the records up to `seq`, except for the admissions of
-- the `live` sessions live at the cut.
CREATE TABLE audit_cuts (
    tenant_id TEXT    NOT NULL,
    pool_kind TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
    pool_id   TEXT    NOT NULL,
    seq       INTEGER NOT NULL CHECK (seq >= 1),
    live      INTEGER NOT NULL CHECK (live >= 0),
    PRIMARY KEY (tenant_id, pool_kind, pool_id)
) STRICT;

-- The head of each stream of the audit log, except for stream 'node': the last sequence number. Heads reveal
-- records missing at the end of a stream. A trigger moves the head in the appending transaction.
CREATE TABLE audit_heads (
    tenant_id TEXT    NOT NULL,
    pool_kind TEXT    NOT NULL,
    pool_id   TEXT    NOT NULL,
    stream    TEXT    NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan')),
    seq       INTEGER NOT NULL CHECK (seq >= 1),
    PRIMARY KEY (tenant_id, pool_kind, pool_id, stream)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_log_moves_head AFTER INSERT ON audit_log WHEN NEW.stream <> 'node'
BEGIN
    INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
    VALUES (NEW.tenant_id, NEW.pool_kind, NEW.pool_id, NEW.stream, NEW.seq)
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream) DO UPDATE SET seq = excluded.seq
    WHERE excluded.seq > audit_heads.seq;
END;

-- A projection of the audit log, except for `last_heartbeat_at`: heartbeats are not events.
CREATE TABLE sessions (
    id                BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id         TEXT    NOT NULL,
    pool_kind         TEXT    NOT NULL CHECK (pool_kind IN ('license', 'subscriber', 'capacity', 'group')),
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
                                                 'upgraded', 'revoked', 'entitlement_ended', 'group_content', 'moved')),
    ip                TEXT,
    user_agent        TEXT,
    metadata          TEXT,
    device_type       TEXT,
    device_name       TEXT,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK (device_name IS NULL OR device_type IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX sessions_live ON sessions (tenant_id, pool_kind, pool_id, holder)
    WHERE ended_at IS NULL;
CREATE INDEX sessions_by_tenant ON sessions (tenant_id, id);
CREATE INDEX sessions_by_pool ON sessions (tenant_id, pool_kind, pool_id, id);
CREATE INDEX sessions_by_holder ON sessions (tenant_id, holder, id);
CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id, id);
CREATE INDEX sessions_by_ip ON sessions (tenant_id, ip, id) WHERE ip IS NOT NULL;
-- Live sessions in the order of the batches of a usage window.
CREATE INDEX sessions_metered_live ON sessions (tenant_id, id) WHERE pool_kind = 'capacity' AND ended_at IS NULL;

-- The live sessions on record, at most one per holder of a pool.
CREATE VIEW live_sessions AS
SELECT substr(id, 8, 1) AS bucket, id AS session_id, tenant_id, pool_kind, pool_id, holder
FROM sessions
WHERE ended_at IS NULL;

CREATE TABLE buckets (
    id                INTEGER NOT NULL PRIMARY KEY CHECK (id BETWEEN 0 AND 255),
    epoch             INTEGER NOT NULL CHECK (epoch >= 0),
    mode              TEXT    NOT NULL CHECK (mode IN ('registry', 'deny', 'ledger', 'allow')),
    registry_identity TEXT,
    -- The ledger in which the epoch was raised (`this_ledger`).
    ledger_identity   TEXT,
    -- The epoch whose journal is not replayed yet, and its mode, which names the registry with the journal. NULL once
    -- the journal is replayed.
    unreplayed_epoch  INTEGER CHECK (unreplayed_epoch < epoch),
    unreplayed_mode   TEXT    CHECK (unreplayed_mode IN ('registry', 'deny', 'ledger', 'allow')),
    -- The lowest fallback mode of the epochs between `unreplayed_epoch` and the bucket's epoch, if any.
    lower_mode        TEXT    CHECK (lower_mode IN ('deny', 'ledger', 'allow')),
    CHECK ((unreplayed_epoch IS NULL) = (unreplayed_mode IS NULL)),
    CHECK (unreplayed_epoch IS NOT NULL OR lower_mode IS NULL)
) STRICT;

INSERT INTO buckets (id, epoch, mode)
WITH RECURSIVE numbers (number) AS (
    SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 255
)
SELECT number, 0, 'registry' FROM numbers;

-- The identity of the ledger. A file stays the same ledger wherever the file is copied.
CREATE VIEW this_ledger AS SELECT 'file' AS identity;

-- The serving nodes.
CREATE TABLE nodes (
    id          BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name        TEXT NOT NULL,
    seen_at     TEXT NOT NULL,
    -- The buckets whose registry the node cannot reach, a bit per bucket. The lowest bit of the first byte is
    -- bucket 0.
    unreachable BLOB NOT NULL CHECK (length(unreachable) = 32),
    -- The nodes without whose word this node extends no lease, 16 bytes each. Empty for a node without a lease,
    -- and for a node that extends no lease.
    named       BLOB NOT NULL CHECK (length(named) % 16 = 0)
) STRICT;

-- The node rebuilding a bucket. A lock only saves double work: any node may take an expired lock.
CREATE TABLE bucket_locks (
    bucket       INTEGER NOT NULL PRIMARY KEY CHECK (bucket BETWEEN 0 AND 255),
    locked_by    BLOB    NOT NULL CHECK (length(locked_by) = 16),
    locked_at    TEXT    NOT NULL,
    locked_until TEXT    NOT NULL
) STRICT;

-- The keys of release codes, shared by all nodes: the newest and its predecessor.
CREATE TABLE release_keys (
    generation INTEGER NOT NULL PRIMARY KEY CHECK (generation >= 1),
    secret     BLOB    NOT NULL CHECK (length(secret) = 32),
    made_at    TEXT    NOT NULL
) STRICT;

-- The home region of each subscriber known here. The version rises with every move of the home. Only a region whose own
-- ledger says 'here' with the region's own number opens the subscriber's pool. A home on its way to `region` is 'moving'
-- in the region that it leaves, and 'moved' once `region` has taken over. `seq` is the number of the pool's last event
-- when the move began.
CREATE TABLE homes (
    tenant_id TEXT    NOT NULL,
    user_id   TEXT    NOT NULL CHECK (user_id <> ''),
    region    INTEGER NOT NULL CHECK (region BETWEEN 1 AND 255),
    version   INTEGER NOT NULL CHECK (version >= 1),
    state     TEXT    NOT NULL CHECK (state IN ('here', 'moving', 'moved')),
    since     TEXT    NOT NULL,
    seq       INTEGER CHECK (seq >= 0),
    -- An adopted home admits nobody before this time.
    admits_from TEXT,
    PRIMARY KEY (tenant_id, user_id),
    CHECK (state = 'here' OR seq IS NOT NULL)
) STRICT;

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
    region    INTEGER NOT NULL PRIMARY KEY CHECK (region BETWEEN 1 AND 255),
    since     TEXT    NOT NULL,
    tenant_id TEXT    NOT NULL,
    user_id   TEXT    NOT NULL
) STRICT;

-- The moves of homes into this region and out of this region. A home 'adopted' comes from a lost region. `seq` is the
-- number of the pool's last event in this region at the move. `peer_seq` is the last number in the region that an arrived
-- home left: the pool's audit trail continues from there. An adopted home has none if no restored ledger was read for it.
-- A record 'forgotten' stands beside 'left' if a restored ledger did not know the move: the move began again after event
-- `seq`.
CREATE TABLE home_moves (
    tenant_id TEXT    NOT NULL,
    user_id   TEXT    NOT NULL,
    version   INTEGER NOT NULL CHECK (version >= 2),
    direction TEXT    NOT NULL CHECK (direction IN ('arrived', 'left', 'adopted', 'forgotten')),
    peer      INTEGER NOT NULL CHECK (peer BETWEEN 1 AND 255),
    seq       INTEGER NOT NULL CHECK (seq >= 0),
    peer_seq  INTEGER CHECK (peer_seq >= 0),
    at        TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, user_id, version, direction),
    CHECK (direction = 'adopted' OR (direction <> 'arrived') = (peer_seq IS NULL))
) STRICT;

-- The region of the ledger: fixed by the first server with regions. `deployment_id` is random, and tells the deployment from
-- rivals with the same number. `is_confirmed`: the number was used without peers, or a peer has accepted the deployment.
-- `refused_by`: a peer that knows a rival. `is_disputed`: a further peer accepts the deployment.
CREATE TABLE own_region (
    id            INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    region        INTEGER NOT NULL CHECK (region BETWEEN 1 AND 255),
    deployment_id BLOB NOT NULL CHECK (length(deployment_id) = 16),
    is_confirmed  INTEGER NOT NULL CHECK (is_confirmed IN (0, 1)),
    refused_by    INTEGER CHECK (refused_by BETWEEN 1 AND 255),
    is_disputed   INTEGER NOT NULL CHECK (is_disputed IN (0, 1))
) STRICT;

-- The first known deployment of each peer region. A rival with the same number is refused.
CREATE TABLE peer_deployments (
    region        INTEGER NOT NULL PRIMARY KEY CHECK (region BETWEEN 1 AND 255),
    deployment_id BLOB NOT NULL CHECK (length(deployment_id) = 16)
) STRICT;

-- Regions lost for good, each with the successor of its pools. The successor admits nobody to the lost region's pools before
-- `admits_from`, and serves all pools once the adoption is done. A later begin moves `admits_from`. Every
-- home taken over since the first begin is on record with `first_admits_from` or a later time. `audit_head` is the last
-- audit record of this ledger at the begin of the adoption: the restored ledger of the lost region has no later admission.
CREATE TABLE region_adoptions (
    lost        INTEGER NOT NULL PRIMARY KEY CHECK (lost BETWEEN 1 AND 255),
    successor   INTEGER NOT NULL CHECK (successor BETWEEN 1 AND 255 AND successor <> lost),
    admits_from TEXT NOT NULL,
    first_admits_from TEXT NOT NULL,
    is_done     INTEGER NOT NULL CHECK (is_done IN (0, 1)),
    audit_head  INTEGER NOT NULL CHECK (audit_head >= 0),
    at          TEXT NOT NULL
) STRICT;

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
    session_id BLOB NOT NULL PRIMARY KEY CHECK (length(session_id) = 16),
    lost       INTEGER NOT NULL CHECK (lost BETWEEN 1 AND 255),
    tenant_id  TEXT NOT NULL,
    pool_kind  TEXT NOT NULL CHECK (pool_kind = 'license'),
    pool_id    TEXT NOT NULL,
    record     TEXT NOT NULL,
    last_heartbeat_at TEXT NOT NULL
) STRICT;

CREATE INDEX arriving_sessions_by_pool
    ON arriving_sessions (tenant_id, pool_kind, pool_id, last_heartbeat_at, session_id);

-- The answer to each write with an `Idempotency-Key`.
CREATE TABLE idempotency_keys (
    tenant_id       TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash    BLOB NOT NULL,
    entity_kind     TEXT NOT NULL CHECK (entity_kind IN ('license', 'plan', 'subscription')),
    entity_id       TEXT NOT NULL,
    -- The pool of a license or a subscription: the answers go along with the pool to another region.
    pool_id         TEXT,
    answer          TEXT NOT NULL,
    at              TEXT NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
) STRICT;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);
CREATE INDEX idempotency_keys_by_pool ON idempotency_keys (tenant_id, pool_id);

-- Plans. Never deleted. A built-in plan has version 0 until its first change.
CREATE TABLE plans (
    tenant_id    TEXT    NOT NULL REFERENCES tenants (id),
    name         TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    device_limit INTEGER NOT NULL CHECK (device_limit BETWEEN 0 AND 4294967295),
    price_cents  INTEGER NOT NULL CHECK (price_cents BETWEEN 0 AND 4294967295),
    when_full    TEXT    NOT NULL CHECK (when_full IN ('evict', 'deny')),
    ttl_seconds  INTEGER CHECK (ttl_seconds BETWEEN 1 AND 4294967295),
    -- The rules of groups that watch together; 0 members: no groups.
    group_members_max  INTEGER NOT NULL DEFAULT 0 CHECK (group_members_max BETWEEN 0 AND 8),
    group_scope        TEXT    NOT NULL DEFAULT 'same_user' CHECK (group_scope IN ('same_user', 'any_user')),
    group_same_content INTEGER NOT NULL DEFAULT 0 CHECK (group_same_content IN (0, 1)),
    status       TEXT    NOT NULL CHECK (status IN ('active', 'retired')),
    version      INTEGER NOT NULL CHECK (version >= 0),
    created_at   TEXT    NOT NULL,
    updated_at   TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;

-- Every tenant has the built-in plans from the start.
CREATE TRIGGER tenants_have_plans AFTER INSERT ON tenants
BEGIN
    INSERT INTO plans (tenant_id, name, device_limit, price_cents, when_full, status, version, created_at, updated_at)
    VALUES
        (NEW.id, 'basic', 1, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'standard', 2, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at),
        (NEW.id, 'premium', 4, 0, 'evict', 'active', 0, NEW.created_at, NEW.created_at);
END;

-- The content that members of groups watch, if their plan demands the same content of all. Without `content_id` the member
-- named none. `differs_since` is set while the content differs from the host's.
CREATE TABLE group_contents (
    session_id    BLOB NOT NULL PRIMARY KEY CHECK (length(session_id) = 16),
    content_id    TEXT,
    differs_since TEXT,
    at            TEXT NOT NULL
) STRICT;

CREATE INDEX group_contents_by_time ON group_contents (at);

-- Subscriptions. Never deleted. A user's newest subscription has the greatest version.
CREATE TABLE subscriptions (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL CHECK (user_id <> ''),
    plan       TEXT    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('active', 'cancelled', 'expired')),
    starts_at  TEXT    NOT NULL,
    ends_at    TEXT    CHECK (ends_at > starts_at),
    version    INTEGER NOT NULL CHECK (version >= 1),
    created_at TEXT    NOT NULL,
    updated_at TEXT    NOT NULL,
    FOREIGN KEY (tenant_id, plan) REFERENCES plans (tenant_id, name)
) STRICT;

CREATE UNIQUE INDEX subscriptions_active ON subscriptions (tenant_id, user_id) WHERE status = 'active';
CREATE INDEX subscriptions_by_user ON subscriptions (tenant_id, user_id, version);
CREATE INDEX subscriptions_by_tenant ON subscriptions (tenant_id, id);
CREATE INDEX subscriptions_by_plan ON subscriptions (tenant_id, plan, id);

-- Periodic jobs, each run by one worker at a time.

CREATE TABLE jobs (
    name          TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
    interval_ms   INTEGER NOT NULL CHECK (interval_ms >= 1),
    -- The scheduled time of the due run or the current run. Later runs follow on the grid `next_run_at` + k *
    -- `interval_ms`.
    next_run_at   TEXT    NOT NULL,
    -- The due time overriding `next_run_at`, after a failure or an operator's request.
    retry_at      TEXT,
    last_run_at   TEXT,
    locked_by     TEXT    CHECK (locked_by <> ''),
    -- The lock's last heartbeat.
    locked_at     TEXT,
    -- The time when the lock becomes stale, and a different worker may take the job.
    locked_until  TEXT,
    -- The number of the latest run, one more for each run.
    fencing_token INTEGER NOT NULL CHECK (fencing_token >= 0),
    -- Consecutive failed or lost runs, and the error of the last failed run.
    failures      INTEGER NOT NULL CHECK (failures >= 0),
    last_error    TEXT,
    CHECK ((locked_by IS NULL) = (locked_at IS NULL)),
    CHECK ((locked_by IS NULL) = (locked_until IS NULL)),
    CHECK (locked_by IS NULL OR fencing_token >= 1)
) STRICT;

-- The run history, a row per run.
CREATE TABLE job_runs (
    job           TEXT    NOT NULL REFERENCES jobs (name),
    fencing_token INTEGER NOT NULL CHECK (fencing_token >= 1),
    worker        TEXT    NOT NULL CHECK (worker <> ''),
    scheduled_at  TEXT    NOT NULL,
    started_at    TEXT    NOT NULL,
    finished_at   TEXT,
    outcome       TEXT    NOT NULL CHECK (outcome IN ('running', 'succeeded', 'failed', 'lost')),
    error         TEXT,
    PRIMARY KEY (job, fencing_token),
    CHECK ((outcome = 'running') = (finished_at IS NULL)),
    CHECK ((outcome = 'failed') = (error IS NOT NULL))
) STRICT;

-- The usage windows on record, without a gap: a window starts at the end of the previous window. Usage in a
-- window can be recomputed from `sessions` at any time. Only a window without records crosses a midnight (UTC).
CREATE TABLE usage_windows (
    starts_at   TEXT    NOT NULL PRIMARY KEY,
    ends_at     TEXT    NOT NULL UNIQUE,
    records     INTEGER NOT NULL CHECK (records >= 0),
    micro_units INTEGER NOT NULL CHECK (micro_units >= 0),
    CHECK (starts_at < ends_at)
) STRICT;

-- The ledger whose windows the sink knows (`this_ledger`), at most one row. In a promoted standby or a restored
-- backup the row names another ledger, which may have had further windows: no window is added until an operator
-- confirms.
CREATE TABLE usage_ledger (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    identity TEXT    NOT NULL
) STRICT;

-- Usage batches on their way to the sink, each of one tenant. A batch counts once its window is in
-- `usage_windows`. Until then the batch is staged, and the emission may still be interrupted.
CREATE TABLE usage_outbox (
    id               BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    window_starts_at TEXT    NOT NULL,
    tenant_id        TEXT    NOT NULL,
    batch            INTEGER NOT NULL CHECK (batch >= 1),
    records          INTEGER NOT NULL CHECK (records >= 1),
    micro_units      INTEGER NOT NULL CHECK (micro_units >= 1),
    state            TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts         INTEGER NOT NULL CHECK (attempts >= 0),
    -- The sink's last answers in a row with status 404.
    not_found        INTEGER NOT NULL CHECK (not_found >= 0),
    -- 1: an attempt was sent and got no clear answer, so the sink may have the batch.
    may_be_stored    INTEGER NOT NULL CHECK (may_be_stored IN (0, 1)),
    next_attempt_at  TEXT    NOT NULL,
    last_status      INTEGER CHECK (last_status BETWEEN 100 AND 999),
    last_error       TEXT,
    delivered_at     TEXT,
    UNIQUE (window_starts_at, tenant_id, batch),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;

CREATE INDEX usage_outbox_due ON usage_outbox (next_attempt_at, id) WHERE state = 'pending';
-- Counted for the metrics.
CREATE INDEX usage_outbox_dead ON usage_outbox (window_starts_at) WHERE state = 'dead';
CREATE INDEX usage_outbox_by_tenant ON usage_outbox (tenant_id, window_starts_at, batch);
CREATE INDEX usage_outbox_by_state ON usage_outbox (tenant_id, state, window_starts_at, batch);

-- The payload of a batch, until the sink acknowledges the batch. A separate table saves rewriting the payload
-- at each failed attempt.
CREATE TABLE usage_payloads (
    batch_id BLOB NOT NULL PRIMARY KEY REFERENCES usage_outbox (id),
    payload  TEXT NOT NULL
) STRICT;

-- Copies of the ledger that took its place: restored backups, each noted with the first raise of an epoch or the first
-- change of an entitlement. A copy may lack the latest records, licenses and plans among them. The versions of changes
-- made in a copy start at `version_floor`.
CREATE TABLE ledger_copies (
    identity      TEXT    NOT NULL PRIMARY KEY,
    noted_at      TEXT    NOT NULL,
    version_floor INTEGER NOT NULL CHECK (version_floor > 0)
) STRICT;

CREATE TRIGGER ledger_copies_stay BEFORE UPDATE ON ledger_copies
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER ledger_copies_are_kept BEFORE DELETE ON ledger_copies
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

-- Repairs of registry time by an operator. Audit records up to `audit_head` may be dated up to `wrong_until`;
-- later records are dated from `repaired_at` on.
CREATE TABLE clock_repairs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    repaired_at TEXT    NOT NULL,
    wrong_until TEXT    NOT NULL,
    audit_head  INTEGER NOT NULL CHECK (audit_head >= 0),
    actor       TEXT    NOT NULL CHECK (actor <> ''),
    sessions    INTEGER NOT NULL CHECK (sessions >= 0),
    CHECK (repaired_at < wrong_until)
) STRICT;

CREATE TRIGGER clock_repairs_stay BEFORE UPDATE ON clock_repairs
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER clock_repairs_are_kept BEFORE DELETE ON clock_repairs
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

-- The latest registry time that destructive jobs and usage windows may go by, at most one row. Follows the clock
-- in small steps. A large step, by a wrong clock or after a long outage, needs an operator.
CREATE TABLE trusted_time (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    at TEXT    NOT NULL
) STRICT;
