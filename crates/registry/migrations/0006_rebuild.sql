-- The steps of a bucket's rebuild. Each step locks the bucket's row, and fails with SQLSTATE 'SK002' if the
-- bucket is in a different epoch or stage than the step requires.

-- Stops serving a bucket of any lower epoch, or a bucket under rebuild for the same epoch.
CREATE FUNCTION registry.rebuild_begin(p_bucket smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE registry.buckets SET epoch = p_epoch, serving = false, fence = fence + 1
    WHERE bucket = p_bucket AND (epoch < p_epoch OR (epoch = p_epoch AND NOT serving));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the bucket is further than epoch %', p_epoch USING ERRCODE = 'SK002';
    END IF;
END
$$;

-- Checks that a bucket is under rebuild for an epoch, and keeps the state until the end of the transaction.
CREATE FUNCTION registry.rebuild_goes_on(p_bucket smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM 1 FROM registry.buckets
    WHERE bucket = p_bucket AND epoch = p_epoch AND NOT serving AND epoch > 0
    FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the bucket is not being rebuilt for epoch %', p_epoch USING ERRCODE = 'SK002';
    END IF;
END
$$;

-- Reads the oldest events of a bucket's journal after p_after, at most p_max, with the epoch of their
-- decision.
CREATE FUNCTION registry.rebuild_journal(p_bucket smallint, p_epoch bigint, p_after bigint, p_max bigint)
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

-- Deletes sessions of a bucket that is to be cleared, at most p_max. Returns the number of deleted sessions.
CREATE FUNCTION registry.rebuild_clear_sessions(p_bucket smallint, p_epoch bigint, p_max bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_sessions bigint := 0;
BEGIN
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    PERFORM 1 FROM registry.buckets WHERE bucket = p_bucket AND filled_for = p_epoch;
    IF NOT FOUND THEN
        DELETE FROM registry.sessions s WHERE s.id = ANY (ARRAY(
            SELECT x.id FROM registry.pools p JOIN registry.sessions x USING (pool)
            WHERE p.bucket = p_bucket LIMIT p_max
        ));
        GET DIAGNOSTICS v_sessions = ROW_COUNT;
    END IF;
    RETURN v_sessions;
END
$$;

-- Clears a bucket: pools, sessions and journal, whose positions restart. Raises the bucket's latest time to at
-- least p_not_before. A repeated call for the same epoch changes nothing, because the bucket may have been filled
-- meanwhile.
CREATE FUNCTION registry.rebuild_clear(p_bucket smallint, p_epoch bigint, p_not_before bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    PERFORM 1 FROM registry.buckets WHERE bucket = p_bucket AND filled_for = p_epoch;
    IF FOUND THEN
        RETURN;
    END IF;
    DELETE FROM registry.sessions s USING registry.pools p WHERE p.bucket = p_bucket AND s.pool = p.pool;
    DELETE FROM registry.pools p WHERE p.bucket = p_bucket;
    DELETE FROM registry.journal j WHERE j.bucket = p_bucket;
    UPDATE registry.acknowledged SET position = 0 WHERE bucket = p_bucket;
    UPDATE registry.buckets
    SET position = 0, filled_for = p_epoch, fence = fence + 1, latest = greatest(latest, p_not_before)
    WHERE bucket = p_bucket;
END
$$;

-- Serves a bucket. A rebuild is refused with SQLSTATE 'SK002' if half of a TTL has passed since the session
-- was filled: the session would be about to expire, and its holder could not renew it meanwhile. A TTL below
-- 15 s counts as 15 s: only a served bucket can end its session. A repeated call for the same epoch changes
-- nothing.
CREATE FUNCTION registry.rebuild_finish(p_bucket smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM 1 FROM registry.buckets WHERE bucket = p_bucket AND epoch = p_epoch AND serving;
    IF FOUND THEN
        RETURN;
    END IF;
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    PERFORM 1 FROM registry.sessions s JOIN registry.pools p USING (pool)
    WHERE p.bucket = p_bucket AND s.last_heartbeat + greatest(s.ttl, 15000) / 2 < registry.time_in(p_bucket)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the bucket was filled too long ago' USING ERRCODE = 'SK002';
    END IF;
    UPDATE registry.buckets SET serving = true, fence = fence + 1 WHERE bucket = p_bucket;
END
$$;
