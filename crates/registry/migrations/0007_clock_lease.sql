-- The lease of this server's clock. Nodes hold the clock against their own monotonic clocks, and prolong the lease
-- while the two agree. A clock that is past its lease jumped forward, or no node was there to serve clients. Either way
-- sessions must not end by it: registry time stands still at the latest time on record here, until
-- registry.trust_clock gives each session a full TTL and lets time go on.

-- Trusts a clock whose lease is over, if it reads p_not_after at most, for p_lease from now on. In the same step each
-- session that was not over when time stood still gets a full TTL, for nobody may have heard its heartbeats, or a
-- jump of the clock took its time away. Sessions of the section that lasts have no heartbeats, and keep their ends.
-- Returns how many sessions that were, and how far time went on; nothing where the lease is not over, or the clock
-- reads more.
CREATE FUNCTION registry.trust_clock(p_not_after bigint, p_lease bigint)
RETURNS TABLE (sessions bigint, skipped bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
    v_now bigint;
    v_stood_at bigint;
    v_trusted_until bigint;
BEGIN
    -- One caller at a time, and nobody tells the time meanwhile.
    SELECT t.latest, t.trusted_until INTO STRICT v_stood_at, v_trusted_until FROM registry.told t FOR UPDATE;
    IF registry.clock() <= v_trusted_until THEN
        RETURN;
    END IF;
    -- A step that was decided while time stood still is not written after this: its session would not get a full TTL.
    UPDATE registry.buckets b SET fence = b.fence + 1;
    v_clock := registry.clock();
    IF v_clock > p_not_after THEN
        RAISE EXCEPTION 'the clock jumped again' USING ERRCODE = 'SK001';
    END IF;
    SELECT max(b.latest) INTO STRICT v_now FROM registry.buckets b;
    v_now := greatest(v_clock, v_stood_at, v_now);
    UPDATE registry.sessions s SET last_heartbeat = v_now
    FROM registry.pools p
    WHERE p.bucket < 256 AND s.pool = p.pool
        AND s.last_heartbeat < v_now AND s.last_heartbeat > v_stood_at - s.ttl;
    GET DIAGNOSTICS sessions = ROW_COUNT;
    skipped := v_now - v_stood_at;
    UPDATE registry.told SET latest = v_now, trusted_until = v_clock + p_lease;
    RETURN NEXT;
END
$$;
