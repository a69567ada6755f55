-- The read of a pool for a decision: a row per session, or one row without a session. The pool's columns are
-- null if the pool is not open.
CREATE TYPE registry.seen AS (
    -- The bucket.
    epoch bigint,
    serving boolean,
    fence bigint,
    -- End of the journal, and the acknowledged position.
    position bigint,
    acknowledged bigint,
    -- The time, and the clock's lag behind the time.
    now bigint,
    behind bigint,
    -- The pool, as in registry.pools.
    pool bigint,
    kind text,
    tenant text,
    name text,
    revision bigint,
    seq bigint,
    last_event bigint,
    live integer,
    terms_version bigint,
    seats bigint,
    ttl bigint,
    ends_at bigint,
    closed boolean,
    due bigint,
    empty_since bigint,
    denials jsonb,
    -- A session, as in registry.sessions.
    id uuid,
    holder text,
    users text[],
    started bigint,
    last_heartbeat bigint,
    session_ttl bigint,
    tier smallint,
    -- The session is one of the stalest of its TTL.
    is_stalest boolean
);

-- Maximum number of sessions read as a whole, without a selection.
CREATE FUNCTION registry.small_pool() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 16';

-- Reads a pool at one instant, without waiting for a lock (optimistic read).
--   p_bucket              the bucket
--   p_kind, p_tenant, p_name   the pool, or
--   p_session             a session of the pool
--   p_holder, p_asked     the holder and the sessions named by the claim
--   p_stalest             number of stalest sessions per TTL to return beside expired sessions; null: all
CREATE FUNCTION registry.glimpse(
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
    SELECT b.epoch, b.serving, b.fence, b.position, a.position,
        greatest(b.latest, registry.told_in(p_bucket, t)), t.trusted_until
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
        -- The TTLs in use, by one step in the index per TTL: nearly always one.
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
        -- OFFSET 0 keeps the planner from merging the parts, so that each part uses its own index.
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

-- Reads a pool as registry.glimpse does, in a transaction that is about to write. Waits for the bucket's
-- lock, held until the end of the transaction, and reads the time afterwards. If all sessions are returned,
-- because all may end, the sessions are locked against renewals.
CREATE FUNCTION registry.look(
    p_bucket smallint, p_kind text, p_tenant text, p_name text, p_session uuid,
    p_holder text, p_asked uuid[], p_stalest integer
) RETURNS SETOF registry.seen
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_pool bigint;
BEGIN
    PERFORM 1 FROM registry.buckets b WHERE b.bucket = p_bucket FOR UPDATE;
    IF p_stalest IS NULL THEN
        SELECT p.pool INTO v_pool FROM registry.pools p
        WHERE p.tenant = p_tenant AND p.name = p_name AND p.kind = p_kind;
        PERFORM 1 FROM registry.sessions s WHERE s.pool = v_pool FOR UPDATE;
    END IF;
    -- A separate statement, which sees the changes of the previous owners of the lock.
    RETURN QUERY SELECT * FROM registry.glimpse(
        p_bucket, p_kind, p_tenant, p_name, p_session, p_holder, p_asked, p_stalest);
END
$$;
