-- Writes the changes of a decision and its events in one statement. Returns the new end of the bucket's
-- journal.
--
-- Fails with SQLSTATE 'SK001', without any change, if data under the decision changed since the read
-- (compare-and-swap).
--   p_bucket, p_fence     the bucket, and its fence as read
--   p_now                 the time of the decision
--   p_pool, p_revision    the pool, and its revision as read; null: a pool to be opened
--   p_kind, p_tenant, p_name   the pool's name
--   p_seq … p_denials     the new columns of the pool: see registry.pools
--   p_close               the empty pool is closed
--   p_gone, p_gone_heartbeats  ended sessions, and their last heartbeats as read
--   p_kept                remaining sessions with changes: [{id, users, last_heartbeat, ttl}]
--   p_new                 new sessions: [{id, holder, users, started, last_heartbeat, ttl, tier}]
--   p_events              the events, in order
CREATE FUNCTION registry.write(
    p_bucket smallint, p_fence bigint, p_now bigint, p_pool bigint, p_revision bigint,
    p_kind text, p_tenant text, p_name text,
    p_seq bigint, p_live integer,
    p_terms_version bigint, p_seats bigint, p_ttl bigint, p_ends_at bigint, p_closed boolean,
    p_due bigint, p_empty_since bigint, p_denials jsonb, p_close boolean,
    p_gone uuid[], p_gone_heartbeats bigint[], p_kept jsonb, p_new jsonb, p_events text[]
) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_events bigint := cardinality(p_events);
    v_position bigint;
    v_pool bigint := p_pool;
    v_count bigint;
BEGIN
    -- From here on, the transaction holds the bucket's lock.
    UPDATE registry.buckets
    SET latest = greatest(latest, p_now), position = position + v_events
    WHERE bucket = p_bucket AND fence = p_fence
    RETURNING position INTO v_position;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the bucket has changed' USING ERRCODE = 'SK001';
    END IF;

    IF v_pool IS NULL THEN
        INSERT INTO registry.pools (
            bucket, kind, tenant, name, seq, last_event, live,
            terms_version, seats, ttl, ends_at, closed, due, empty_since, denials
        ) VALUES (
            p_bucket, p_kind, p_tenant, p_name, p_seq, CASE WHEN v_events > 0 THEN v_position ELSE 0 END, p_live,
            p_terms_version, p_seats, p_ttl, p_ends_at, p_closed, p_due, p_empty_since, p_denials
        ) RETURNING pool INTO v_pool;
    ELSIF p_close THEN
        DELETE FROM registry.pools WHERE pool = p_pool AND revision = p_revision;
    ELSE
        UPDATE registry.pools SET
            revision = revision + 1, seq = p_seq, live = p_live,
            last_event = CASE WHEN v_events > 0 THEN v_position ELSE last_event END,
            terms_version = p_terms_version, seats = p_seats, ttl = p_ttl, ends_at = p_ends_at, closed = p_closed,
            due = p_due, empty_since = p_empty_since, denials = p_denials
        WHERE pool = p_pool AND revision = p_revision;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the pool has changed' USING ERRCODE = 'SK001';
    END IF;

    IF cardinality(p_gone) > 0 THEN
        DELETE FROM registry.sessions s
        USING unnest(p_gone, p_gone_heartbeats) AS g (id, last_heartbeat)
        WHERE s.id = g.id AND s.last_heartbeat = g.last_heartbeat;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count <> cardinality(p_gone) THEN
            RAISE EXCEPTION 'a session was renewed' USING ERRCODE = 'SK001';
        END IF;
    END IF;

    IF p_kept IS NOT NULL THEN
        UPDATE registry.sessions s
        -- The holder may have heard of another TTL by a heartbeat since the step's read.
        SET users = k.users, last_heartbeat = greatest(s.last_heartbeat, k.last_heartbeat),
            ttl = CASE WHEN s.last_heartbeat > k.last_heartbeat THEN s.ttl ELSE k.ttl END
        FROM jsonb_to_recordset(p_kept) AS k (id uuid, users text[], last_heartbeat bigint, ttl bigint)
        WHERE s.id = k.id;
    END IF;

    IF p_new IS NOT NULL THEN
        INSERT INTO registry.sessions (id, pool, holder, users, started, last_heartbeat, ttl, tier)
        SELECT n.id, v_pool, n.holder, n.users, n.started, n.last_heartbeat, n.ttl, n.tier
        FROM jsonb_to_recordset(p_new) AS n (
            id uuid, holder text, users text[], started bigint, last_heartbeat bigint, ttl bigint, tier smallint);
    END IF;

    IF v_events > 0 THEN
        INSERT INTO registry.journal (bucket, position, event)
        SELECT p_bucket, v_position - v_events + e.number, e.event
        FROM unnest(p_events) WITH ORDINALITY AS e (event, number);
    END IF;
    RETURN v_position;
END
$$;
