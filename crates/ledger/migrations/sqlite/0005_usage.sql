-- Usage of capacities: which stretches of time are on record, and what of them a sink must be told.

-- Time whose usage is on record, without a gap: a window starts where the one before it ended. What a
-- session used in one is computed from `sessions`, at any time again.
CREATE TABLE usage_windows (
    starts_at   TEXT    NOT NULL PRIMARY KEY,
    ends_at     TEXT    NOT NULL UNIQUE,
    records     INTEGER NOT NULL CHECK (records >= 1),
    micro_units INTEGER NOT NULL CHECK (micro_units >= 1),
    CHECK (starts_at < ends_at)
) STRICT;

-- Batches of usage records on their way to the sink; each is one tenant's. A batch counts only once its
-- window stands in usage_windows: before that it is staged, by an emission that may not come to its end.
CREATE TABLE usage_outbox (
    id               BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    window_starts_at TEXT    NOT NULL,
    tenant_id        TEXT    NOT NULL,
    batch            INTEGER NOT NULL CHECK (batch >= 1),
    records          INTEGER NOT NULL CHECK (records >= 1),
    micro_units      INTEGER NOT NULL CHECK (micro_units >= 1),
    state            TEXT    NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts         INTEGER NOT NULL CHECK (attempts >= 0),
    next_attempt_at  TEXT    NOT NULL,
    last_status      INTEGER CHECK (last_status BETWEEN 100 AND 999),
    last_error       TEXT,
    delivered_at     TEXT,
    UNIQUE (window_starts_at, tenant_id, batch),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;

CREATE INDEX usage_outbox_due ON usage_outbox (next_attempt_at, id) WHERE state = 'pending';
CREATE INDEX usage_outbox_by_tenant ON usage_outbox (tenant_id, window_starts_at, batch);
CREATE INDEX usage_outbox_by_state ON usage_outbox (tenant_id, state, window_starts_at, batch);

-- What a batch says, for as long as the sink has not acknowledged it. Apart from the batch, so that a
-- failed attempt does not write it anew.
CREATE TABLE usage_payloads (
    batch_id BLOB NOT NULL PRIMARY KEY REFERENCES usage_outbox (id),
    payload  TEXT NOT NULL
) STRICT;

-- The sessions that a window may need: those that are live, in the order of its batches, and those
-- that ended after its start.
CREATE INDEX sessions_metered_live ON sessions (tenant_id, id)
    WHERE pool_kind = 'capacity' AND end_reason IS NULL;
CREATE INDEX sessions_metered_ended ON sessions (ended_at)
    WHERE pool_kind = 'capacity' AND end_reason IS NOT NULL;
