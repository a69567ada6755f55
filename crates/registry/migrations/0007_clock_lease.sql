-- The lease of the server's clock. Nodes compare the clock with their own monotonic clocks, and prolong the
-- lease while both agree. A clock past its lease jumped forward, or no node was there to serve clients. In
-- either case no session may end: registry time stands still at the latest time on record, until
-- registry.trust_clock gives each session a full TTL and restarts time. With many sessions, registry.renew_ahead does
-- most of the work before.

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

-- Renews a page of sessions while time stands still, so that registry.trust_clock finds few sessions to renew: a
-- statement that renews a million sessions takes longer than a statement may. Each session that was live when time
-- stopped gets a last heartbeat p_ahead later than the clock, unless half of p_ahead is left of an earlier renewal.
--   p_after, p_max   the page: sessions with greater ids, at most so many
--   p_not_after      the latest plausible reading of the clock
-- Returns the last id of the page, and the number of renewed sessions. The id is null after the last page, and if the
-- lease is not over. Fails with SQLSTATE 'SK001' if the clock reads more than p_not_after.
CREATE FUNCTION registry.renew_ahead(p_after uuid, p_max bigint, p_ahead bigint, p_not_after bigint)
RETURNS TABLE (last_id uuid, sessions bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
    v_stood_at bigint;
    v_trusted_until bigint;
BEGIN
    -- One page at a time: two nodes would lock the same sessions in different orders.
    PERFORM pg_advisory_xact_lock(8315159439655396722);
    SELECT t.latest, t.trusted_until INTO STRICT v_stood_at, v_trusted_until FROM registry.told t;
    v_clock := registry.clock();
    sessions := 0;
    IF v_clock > v_trusted_until THEN
        IF v_clock > p_not_after THEN
            RAISE EXCEPTION 'the clock jumped again' USING ERRCODE = 'SK001';
        END IF;
        SELECT x.id INTO last_id FROM (
            SELECT s.id FROM registry.sessions s WHERE s.id > p_after ORDER BY s.id LIMIT p_max
        ) x ORDER BY x.id DESC LIMIT 1;
        UPDATE registry.sessions s SET last_heartbeat = greatest(v_clock, v_stood_at, x.latest) + p_ahead
        FROM (
            -- Sessions of the lasting section keep their ends.
            SELECT y.id, (
                SELECT b.latest FROM registry.pools p JOIN registry.buckets b USING (bucket)
                WHERE p.pool = y.pool AND p.bucket < 256
            ) AS latest
            FROM registry.sessions y WHERE y.id > p_after AND y.id <= last_id OFFSET 0
        ) x
        WHERE s.id = x.id AND x.latest IS NOT NULL
            AND s.last_heartbeat < greatest(v_clock, v_stood_at, x.latest) + p_ahead / 2
            AND s.last_heartbeat > greatest(v_stood_at, x.latest) - s.ttl;
        GET DIAGNOSTICS sessions = ROW_COUNT;
    END IF;
    RETURN NEXT;
END
$$;
