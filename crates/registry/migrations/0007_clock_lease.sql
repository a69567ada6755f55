-- The lease of the server's clock. Nodes compare the clock with their own monotonic clocks, and prolong the
-- lease while both agree. A clock past its lease jumped forward, or no node was there to serve clients. In
-- either case no session may end: registry time stands still at the latest time on record, until
-- registry.trust_clock gives each session a full TTL and restarts time.

-- Trusts a clock whose lease is over, if the clock reads p_not_after at most, for p_lease from now. In the
-- same step, each session that was live when time stopped gets a full TTL, because its heartbeats may have
-- been lost, or a jump of the clock took its time away. Sessions of the lasting section have no heartbeats,
-- and keep their ends. Returns the number of these sessions and the span skipped. Returns no row if the lease
-- is not over. Fails with SQLSTATE 'SK001' if the clock reads more than p_not_after.
CREATE FUNCTION registry.trust_clock(p_not_after bigint, p_lease bigint)
RETURNS TABLE (sessions bigint, skipped bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
    v_stood_at bigint;
    v_trusted_until bigint;
BEGIN
    -- Admits one caller at a time, and blocks registry.tell_time meanwhile.
    SELECT t.latest, t.trusted_until INTO STRICT v_stood_at, v_trusted_until FROM registry.told t FOR UPDATE;
    IF registry.clock() <= v_trusted_until THEN
        RETURN;
    END IF;
    -- The fence rejects later writes of steps decided while time stood still, whose sessions would not get a
    -- full TTL. Sessions of the lasting section keep their ends.
    UPDATE registry.buckets b SET fence = b.fence + 1 WHERE b.bucket < 256;
    v_clock := registry.clock();
    IF v_clock > p_not_after THEN
        RAISE EXCEPTION 'the clock jumped again' USING ERRCODE = 'SK001';
    END IF;
    -- The time of a bucket may be later than the section's.
    UPDATE registry.sessions s SET last_heartbeat = greatest(v_clock, v_stood_at, b.latest)
    FROM registry.pools p JOIN registry.buckets b USING (bucket)
    WHERE p.bucket < 256 AND s.pool = p.pool
        AND s.last_heartbeat < greatest(v_clock, v_stood_at, b.latest)
        AND s.last_heartbeat > greatest(v_stood_at, b.latest) - s.ttl;
    GET DIAGNOSTICS sessions = ROW_COUNT;
    skipped := greatest(v_clock - v_stood_at, 0);
    -- The lease begins after the update, which may take longer than a lease: the lease would be over at the commit, and
    -- time would never run. A clock that jumps during the update is noticed only beyond the longest statement of 30 s.
    UPDATE registry.told t SET
        latest = greatest(v_clock, v_stood_at),
        latest_lasting = greatest(t.latest_lasting, v_clock),
        trusted_until = least(registry.clock(), v_clock + 30000) + p_lease;
    RETURN NEXT;
END
$$;
