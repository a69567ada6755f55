-- Serves a bucket from now on. A rebuild that took half of a TTL since it filled a session is refused with SQLSTATE 'SK002':
-- the session would be about to expire, and its holder could not renew it meanwhile.
CREATE OR REPLACE FUNCTION registry.rebuild_finish(p_bucket smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM registry.rebuild_goes_on(p_bucket, p_epoch);
    PERFORM 1 FROM registry.sessions s JOIN registry.pools p USING (pool)
    WHERE p.bucket = p_bucket AND s.last_heartbeat + s.ttl / 2 < registry.time_in(p_bucket)
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the bucket was filled too long ago' USING ERRCODE = 'SK002';
    END IF;
    UPDATE registry.buckets SET serving = true, fence = fence + 1 WHERE bucket = p_bucket;
END
$$;
