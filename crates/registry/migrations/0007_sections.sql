-- A second section of buckets, 256 to 511, for sessions that last without heartbeats. It is never rebuilt, whatever
-- becomes of the first one, and so is served from the beginning, always in epoch 1.
INSERT INTO registry.buckets (bucket, epoch, serving) SELECT number, 1, true FROM generate_series(256, 511) AS number;
INSERT INTO registry.acknowledged (bucket) SELECT generate_series(256, 511);

-- The epoch for which the bucket was emptied and filled: all in its journal was decided in it.
ALTER TABLE registry.buckets ADD COLUMN filled_for bigint NOT NULL DEFAULT 0;
UPDATE registry.buckets SET filled_for = epoch;

-- The oldest events of a bucket's journal behind p_after, at most p_max, with the epoch in which they were decided.
CREATE OR REPLACE FUNCTION registry.rebuild_journal(p_bucket smallint, p_epoch bigint, p_after bigint, p_max bigint)
RETURNS TABLE (bucket smallint, epoch bigint, "position" bigint, event text)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    RETURN QUERY
        SELECT b.bucket, b.filled_for, j.position, j.event
        FROM registry.buckets b JOIN registry.journal j USING (bucket)
        WHERE b.bucket = p_bucket AND j.position > p_after
        ORDER BY j.position LIMIT p_max;
END
$$;

-- Empties a bucket: pools, sessions and journal, which begins anew. Its latest time stays.
CREATE OR REPLACE FUNCTION registry.rebuild_clear(p_bucket smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    DELETE FROM registry.sessions s USING registry.pools p WHERE p.bucket = p_bucket AND s.pool = p.pool;
    DELETE FROM registry.pools p WHERE p.bucket = p_bucket;
    DELETE FROM registry.journal j WHERE j.bucket = p_bucket;
    UPDATE registry.acknowledged SET position = 0 WHERE bucket = p_bucket;
    UPDATE registry.buckets SET position = 0, filled_for = p_epoch, fence = fence + 1 WHERE bucket = p_bucket;
END
$$;
