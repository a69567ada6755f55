-- Applies a batch of events atomically, in one call: the caller waits for one answer instead of nine. The
-- function runs the statements named in its comments, in the same order. Each statement sees everything
-- committed before the statement began.
--
-- `Ledger::open` runs the file after the migrations, so the file holds the only definition. A change of the
-- arguments needs a migration dropping the old function.
--
-- Plans are generic and cached by the connection. A generic plan expects ten elements in an array, but a
-- fraction of the whole log for the newest records, so ends and beginnings of sessions are read from the
-- arrays. Index lookups are forced by the connection, which must be a write connection (`WRITING` in
-- `src/database/postgres.rs`).
--
-- The arrays, in order:
-- 1. the buckets, and the epoch of the events in each bucket;
-- 2. the numbers preceding the events, except for numbers inside the batch;
-- 3. the events, an array per column.
--
-- Returns the positions, from 1, of the events already on record. Refuses the batch with SQLSTATE SK001 if
-- the epoch of an event is not its bucket's, or an event does not continue the pool's record.
CREATE OR REPLACE FUNCTION apply_events(
    bucket_ids         BIGINT[],
    bucket_epochs      BIGINT[],

    tenants_before     TEXT[],
    kinds_before       TEXT[],
    pools_before       TEXT[],
    seqs_before        BIGINT[],

    ats                TIMESTAMPTZ[],
    tenant_ids         TEXT[],
    pool_kinds         TEXT[],
    pool_ids           TEXT[],
    seqs               BIGINT[],
    epochs             BIGINT[],
    actions            TEXT[],
    session_ids        UUID[],
    holders            TEXT[],
    actors             TEXT[],
    request_ids        TEXT[],
    reasons            TEXT[],
    limits             BIGINT[],
    limit_versions     BIGINT[],
    lives              BIGINT[],
    counts             BIGINT[],
    folds              BOOLEAN[],
    user_ids           TEXT[],
    tiers              BIGINT[],
    ips                TEXT[],
    user_agents        TEXT[],
    metadatas          TEXT[],
    device_types       TEXT[],
    device_names       TEXT[],
    ttls               BIGINT[],
    last_heartbeat_ats TIMESTAMPTZ[],
    expires_ats        TIMESTAMPTZ[]
) RETURNS SETOF BIGINT LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    head     BIGINT;
    appended BIGINT;
    place    RECORD;
    are_new  BOOLEAN[] := array_fill(TRUE, ARRAY[cardinality(ats)]);
BEGIN
    -- hold_buckets.sql
    PERFORM FROM buckets WHERE id = ANY (bucket_ids) ORDER BY id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM unnest(bucket_ids, bucket_epochs) AS said (id, epoch)
        WHERE NOT EXISTS (SELECT FROM buckets WHERE buckets.id = said.id AND buckets.epoch = said.epoch)
    ) THEN
        RAISE EXCEPTION 'events are of another epoch than their buckets' USING ERRCODE = 'SK001';
    END IF;

    -- missing_place.sql
    IF EXISTS (
        SELECT FROM unnest(tenants_before, kinds_before, pools_before, seqs_before)
            AS before (tenant_id, pool_kind, pool_id, seq)
        WHERE NOT EXISTS (
                SELECT FROM audit_log AS last
                WHERE last.tenant_id = before.tenant_id AND last.pool_kind = before.pool_kind
                  AND last.pool_id = before.pool_id AND last.stream = 'session' AND last.seq = before.seq
            )
          AND NOT EXISTS (
                SELECT FROM audit_cuts AS c
                WHERE c.tenant_id = before.tenant_id AND c.pool_kind = before.pool_kind
                  AND c.pool_id = before.pool_id AND c.seq >= before.seq
            )
    ) THEN
        RAISE EXCEPTION 'events do not follow on what is on record' USING ERRCODE = 'SK001';
    END IF;

    -- audit_head.sql
    SELECT COALESCE(MAX(id), 0) INTO head FROM audit_log;

    -- append_audit.sql
    INSERT INTO audit_log (
        at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor,
        request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
        user_agent, metadata, device_type, device_name, ttl_ms, last_heartbeat_at, expires_at
    )
    SELECT
        at, tenant_id, pool_kind, pool_id, 'session', seq, epoch, action, session_id, holder, actor,
        request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
        user_agent, metadata, device_type, device_name, ttl_ms, last_heartbeat_at, expires_at
    FROM unnest(
        ats, tenant_ids, pool_kinds, pool_ids, seqs, epochs, actions, session_ids, holders, actors,
        request_ids, reasons, limits, limit_versions, lives, counts, folds, user_ids, tiers, ips,
        user_agents, metadatas, device_types, device_names, ttls, last_heartbeat_ats, expires_ats
    ) AS event (
        at, tenant_id, pool_kind, pool_id, seq, epoch, action, session_id, holder, actor,
        request_id, reason, limit_seats, limit_version, live, count, folded, user_id, tier, ip,
        user_agent, metadata, device_type, device_name, ttl_ms, last_heartbeat_at, expires_at
    )
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream, seq) DO NOTHING;
    GET DIAGNOSTICS appended = ROW_COUNT;

    IF appended < cardinality(ats) THEN
        -- recorded_event.sql; every event has a record by now.
        FOR place IN
            SELECT
                event.number, recorded.id <= head AS was_recorded,
                (event.at, event.action, event.session_id)
                    IS DISTINCT FROM (recorded.at, recorded.action, recorded.session_id) AS is_taken
            FROM unnest(tenant_ids, pool_kinds, pool_ids, seqs, ats, actions, session_ids) WITH ORDINALITY
                AS event (tenant_id, pool_kind, pool_id, seq, at, action, session_id, number)
            JOIN audit_log AS recorded
                ON recorded.tenant_id = event.tenant_id AND recorded.pool_kind = event.pool_kind
               AND recorded.pool_id = event.pool_id AND recorded.stream = 'session' AND recorded.seq = event.seq
        LOOP
            IF place.is_taken THEN
                RAISE EXCEPTION 'another event is on record at the place of one' USING ERRCODE = 'SK001';
            END IF;
            IF place.was_recorded THEN
                are_new[place.number] := FALSE;
                RETURN NEXT place.number;
            END IF;
        END LOOP;
    END IF;

    -- end_sessions.sql, for new events
    IF 'ended' = ANY (actions) THEN
        UPDATE sessions
        SET ended_at = e.at,
            end_reason = e.reason,
            last_heartbeat_at = e.last_heartbeat_at,
            expires_at = e.expires_at
        FROM unnest(are_new, actions, session_ids, ats, reasons, last_heartbeat_ats, expires_ats)
            AS e (is_new, action, session_id, at, reason, last_heartbeat_at, expires_at)
        WHERE e.is_new AND e.action = 'ended'
          AND sessions.id = e.session_id
          AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END;
    END IF;

    -- begin_sessions.sql, for new events
    IF 'admitted' = ANY (actions) THEN
        INSERT INTO sessions (
            id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
            expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name
        )
        SELECT
            a.session_id, a.tenant_id, a.pool_kind, a.pool_id, a.holder, a.user_id, a.tier, a.at,
            COALESCE(e.last_heartbeat_at, a.last_heartbeat_at), a.ttl_ms,
            COALESCE(e.expires_at, a.expires_at), e.at, e.reason, a.ip, a.user_agent, a.metadata,
            a.device_type, a.device_name
        FROM unnest(
            are_new, actions, session_ids, tenant_ids, pool_kinds, pool_ids, holders, user_ids, tiers, ats,
            last_heartbeat_ats, ttls, expires_ats, ips, user_agents, metadatas, device_types, device_names
        ) AS a (
            is_new, action, session_id, tenant_id, pool_kind, pool_id, holder, user_id, tier, at,
            last_heartbeat_at, ttl_ms, expires_at, ip, user_agent, metadata, device_type, device_name
        )
        LEFT JOIN audit_log AS e
            ON e.session_id = a.session_id AND e.session_id IS NOT NULL AND e.action = 'ended'
        WHERE a.is_new AND a.action = 'admitted'
        ON CONFLICT (id) DO NOTHING;
    END IF;
END;
$$;
