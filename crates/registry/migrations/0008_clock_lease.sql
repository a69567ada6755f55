-- The lease of this server's clock. Nodes hold the clock against their own monotonic clocks, and prolong the lease
-- while the two agree. A clock that is past its lease jumped forward, or no node was there to serve clients. Either way
-- sessions must not end by it: registry time stands still at the latest time on record here, until
-- registry.trust_clock gives each session a full TTL and lets time go on.

-- Until when the clock is trusted, by the clock itself. The largest number: no node has kept the lease yet.
ALTER TABLE registry.told ADD COLUMN trusted_until bigint NOT NULL DEFAULT 9223372036854775807;

-- The time of a step in a bucket: the clock's while it is trusted, and never earlier than the latest time that anybody
-- has seen. So time stands still where the clock was set back, or jumped, and nothing is over that was not before.
-- The clock is read once, for it may jump between two readings.
CREATE OR REPLACE FUNCTION registry.time_in(p_bucket smallint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, t.latest)
    FROM registry.buckets b, registry.told t, (SELECT registry.clock() AS clock OFFSET 0) c
    WHERE b.bucket = p_bucket
$$;

-- Looks at one instant and waits for nobody.
--   p_bucket              the bucket
--   p_kind, p_tenant, p_name   the pool, or
--   p_session             a session of it
--   p_holder, p_asked     the holder and the sessions that the decision asks about
--   p_stalest             how many of the stalest sessions of each TTL to show beside those that are over; null: all
CREATE OR REPLACE FUNCTION registry.glimpse(
    p_bucket smallint, p_kind text, p_tenant text, p_name text, p_session uuid,
    p_holder text, p_asked uuid[], p_stalest integer
) RETURNS SETOF registry.seen
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v registry.seen;
    v_clock bigint;
    v_trusted_until bigint;
BEGIN
    SELECT b.epoch, b.serving, b.fence, b.position, a.position, greatest(b.latest, t.latest),
        t.trusted_until
    INTO STRICT v.epoch, v.serving, v.fence, v.position, v.acknowledged, v.now, v_trusted_until
    FROM registry.buckets b JOIN registry.acknowledged a USING (bucket), registry.told t
    WHERE b.bucket = p_bucket;
    v_clock := registry.clock();
    v.now := greatest(v.now, CASE WHEN v_clock <= v_trusted_until THEN v_clock END);
    v.behind := v.now - v_clock;

    IF p_session IS NOT NULL THEN
        SELECT p.pool, p.kind, p.tenant, p.name, p.revision, p.seq, p.last_event, p.live,
            p.terms_version, p.seats, p.ttl, p.ends_at, p.closed, p.due, p.empty_since, p.denials
        INTO v.pool, v.kind, v.tenant, v.name, v.revision, v.seq, v.last_event, v.live,
            v.terms_version, v.seats, v.ttl, v.ends_at, v.closed, v.due, v.empty_since, v.denials
        FROM registry.sessions s JOIN registry.pools p USING (pool)
        WHERE s.id = p_session;
    ELSE
        SELECT p.pool, p.kind, p.tenant, p.name, p.revision, p.seq, p.last_event, p.live,
            p.terms_version, p.seats, p.ttl, p.ends_at, p.closed, p.due, p.empty_since, p.denials
        INTO v.pool, v.kind, v.tenant, v.name, v.revision, v.seq, v.last_event, v.live,
            v.terms_version, v.seats, v.ttl, v.ends_at, v.closed, v.due, v.empty_since, v.denials
        FROM registry.pools p
        WHERE p.tenant = p_tenant AND p.name = p_name AND p.kind = p_kind;
    END IF;
    IF v.pool IS NULL OR v.live = 0 THEN
        RETURN NEXT v;
        RETURN;
    END IF;

    IF p_stalest IS NULL OR v.live <= registry.small_pool() THEN
        v.is_stalest := false;
        FOR v.id, v.holder, v.users, v.started, v.last_heartbeat, v.session_ttl, v.tier IN
            SELECT s.id, s.holder, s.users, s.started, s.last_heartbeat, s.ttl, s.tier
            FROM registry.sessions s WHERE s.pool = v.pool
        LOOP
            RETURN NEXT v;
        END LOOP;
        RETURN;
    END IF;

    FOR v.id, v.holder, v.users, v.started, v.last_heartbeat, v.session_ttl, v.tier, v.is_stalest IN
        WITH RECURSIVE
        -- The TTLs in use, one step in the index for each: nearly always there is one.
        ttls (ttl) AS (
            SELECT min(s.ttl) FROM registry.sessions s WHERE s.pool = v.pool
            UNION ALL
            SELECT (SELECT min(s.ttl) FROM registry.sessions s WHERE s.pool = v.pool AND s.ttl > t.ttl)
            FROM ttls t WHERE t.ttl IS NOT NULL
        ),
        stalest AS (
            SELECT x.* FROM ttls t, LATERAL (
                SELECT * FROM registry.sessions s
                WHERE s.pool = v.pool AND s.ttl = t.ttl AND s.last_heartbeat > v.now - t.ttl
                ORDER BY s.last_heartbeat, s.started, s.id LIMIT p_stalest
            ) x
        ),
        -- OFFSET 0: as it is written, each part by its own index.
        silent AS (
            SELECT x.* FROM ttls t, LATERAL (
                SELECT * FROM registry.sessions s
                WHERE s.pool = v.pool AND s.ttl = t.ttl AND s.last_heartbeat <= v.now - t.ttl
                OFFSET 0
            ) x
        ),
        asked AS (
            SELECT x.* FROM (
                SELECT * FROM registry.sessions s WHERE s.id = ANY (p_asked || p_session) OFFSET 0
            ) x WHERE x.pool = v.pool
            UNION
            SELECT * FROM registry.sessions s WHERE s.pool || '/' || s.holder = v.pool || '/' || p_holder
        )
        SELECT x.id, x.holder, x.users, x.started, x.last_heartbeat, x.ttl, x.tier, true FROM stalest x
        UNION ALL
        SELECT x.id, x.holder, x.users, x.started, x.last_heartbeat, x.ttl, x.tier, false FROM silent x
        UNION ALL
        SELECT x.id, x.holder, x.users, x.started, x.last_heartbeat, x.ttl, x.tier, false FROM asked x
        WHERE x.last_heartbeat > v.now - x.ttl AND NOT EXISTS (SELECT FROM stalest y WHERE y.id = x.id)
    LOOP
        RETURN NEXT v;
    END LOOP;
END
$$;

-- Tells the time, and sees to it that no step that begins after this has an earlier one. Prolongs the lease of the
-- clock, if the lease is not over.
--   p_not_after   the latest time of the clock that the caller believes; 0: the caller does not keep the lease
--   p_lease       how long the lease is
-- Returns the time, the clock, and whether the clock is trusted.
CREATE FUNCTION registry.tell_time(p_not_after bigint, p_lease bigint)
RETURNS TABLE (now bigint, clock bigint, is_trusted boolean)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
    v_trusted_until bigint;
BEGIN
    -- A crash may forget it: what was decided by it is forgotten then as well, or in a bucket's row.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT t.trusted_until INTO STRICT v_trusted_until FROM registry.told t FOR UPDATE;
    v_clock := registry.clock();
    is_trusted := v_clock <= v_trusted_until;
    IF is_trusted AND v_clock <= p_not_after THEN
        v_trusted_until := v_clock + p_lease;
    END IF;
    RETURN QUERY
        UPDATE registry.told t SET
            latest = greatest(
                t.latest, CASE WHEN is_trusted THEN v_clock END, (SELECT max(b.latest) FROM registry.buckets b)),
            trusted_until = v_trusted_until
        RETURNING t.latest, v_clock, is_trusted;
END
$$;

-- Tells nodes of the version before the time, and by how much the clock is behind it.
CREATE OR REPLACE FUNCTION registry.tell_time() RETURNS TABLE (now bigint, behind bigint)
LANGUAGE sql VOLATILE
AS $$ SELECT t.now, t.now - t.clock FROM registry.tell_time(0, 0) t $$;

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
