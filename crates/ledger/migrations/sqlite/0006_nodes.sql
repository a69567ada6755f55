-- The nodes that serve, and which of them rebuilds a bucket.

CREATE TABLE nodes (
    id          BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name        TEXT NOT NULL,
    seen_at     TEXT NOT NULL,
    -- The buckets whose registry it cannot reach: a bit each, the lowest of the first byte is bucket 0.
    unreachable BLOB NOT NULL CHECK (length(unreachable) = 32)
) STRICT;

-- Saves double work, and nothing more: a lock that is over is anybody's.
CREATE TABLE bucket_locks (
    bucket       INTEGER NOT NULL PRIMARY KEY CHECK (bucket BETWEEN 0 AND 255),
    locked_by    BLOB    NOT NULL CHECK (length(locked_by) = 16),
    locked_at    TEXT    NOT NULL,
    locked_until TEXT    NOT NULL
) STRICT;
