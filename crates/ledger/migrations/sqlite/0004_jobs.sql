-- Periodic work that one worker at a time does.

CREATE TABLE jobs (
    name          TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
    interval_ms   INTEGER NOT NULL CHECK (interval_ms >= 1),
    -- The scheduled time of the run that is due next, or under way: next_run_at + k * interval_ms is
    -- the grid of all that follow.
    next_run_at   TEXT    NOT NULL,
    -- When it is due instead: after a failure, or because someone asked.
    retry_at      TEXT,
    last_run_at   TEXT,
    locked_by     TEXT    CHECK (locked_by <> ''),
    -- The lock's last heartbeat.
    locked_at     TEXT,
    -- From then on the lock is stale, and another may take it.
    locked_until  TEXT,
    -- The number of the latest run: one more with each.
    fencing_token INTEGER NOT NULL CHECK (fencing_token >= 0),
    -- Runs in a row that did not succeed, and what the last of them said.
    failures      INTEGER NOT NULL CHECK (failures >= 0),
    last_error    TEXT,
    CHECK ((locked_by IS NULL) = (locked_at IS NULL)),
    CHECK ((locked_by IS NULL) = (locked_until IS NULL)),
    CHECK (locked_by IS NULL OR fencing_token >= 1)
) STRICT;

-- The history: one row for each run.
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
