-- Puts events of a registry's journal on record, all of them or none, in one statement: whoever waits for it waits for one
-- answer instead of nine. It does what the statements do that say so of themselves, in their order; each of its statements
-- sees what was committed before it began, as theirs do.
--
-- Its arrays are, in turn:
-- 1. buckets, and the epoch that events of each are of;
-- 2. the places that events follow on, but for those of the batch itself;
-- 3. the events, a column an array.
--
-- Returns the numbers, from 1, of those events that were on record before. Refuses all with SQLSTATE SK001 if one is of
-- another epoch than its bucket, or does not continue what is on record.
CREATE FUNCTION apply_events(
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
) RETURNS SETOF BIGINT LANGUAGE plpgsql AS $$
DECLARE
    head     BIGINT;
    appended BIGINT;
    place    RECORD;
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
                SELECT FROM (
                    SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log
                    WHERE (tenant_id, pool_kind, pool_id, stream, seq)
                        <= (before.tenant_id, before.pool_kind, before.pool_id, 'session', before.seq)
                    ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
                    LIMIT 1
                ) AS last
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
        -- recorded_event.sql; something is on record at each place by now.
        FOR place IN
            SELECT
                event.number, recorded.id <= head AS was_recorded,
                (event.at, event.action, event.session_id)
                    IS DISTINCT FROM (recorded.at, recorded.action, recorded.session_id) AS is_taken
            FROM unnest(tenant_ids, pool_kinds, pool_ids, seqs, ats, actions, session_ids) WITH ORDINALITY
                AS event (tenant_id, pool_kind, pool_id, seq, at, action, session_id, number)
            CROSS JOIN LATERAL (
                SELECT id, at, action, session_id FROM audit_log
                WHERE (tenant_id, pool_kind, pool_id, stream, seq)
                    <= (event.tenant_id, event.pool_kind, event.pool_id, 'session', event.seq)
                ORDER BY tenant_id DESC, pool_kind DESC, pool_id DESC, stream DESC, seq DESC
                LIMIT 1
            ) AS recorded
        LOOP
            IF place.is_taken THEN
                RAISE EXCEPTION 'another event is on record at the place of one' USING ERRCODE = 'SK001';
            END IF;
            IF place.was_recorded THEN
                RETURN NEXT place.number;
            END IF;
        END LOOP;
    END IF;

    -- end_sessions.sql
    IF 'ended' = ANY (actions) THEN
        UPDATE sessions
        SET ended_at = e.at,
            end_reason = e.reason,
            last_heartbeat_at = e.last_heartbeat_at,
            expires_at = e.expires_at
        FROM audit_log AS e
        WHERE e.id > head AND e.id <= 9223372036854775807
          AND e.action = 'ended'
          AND sessions.id = e.session_id
          AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END;
    END IF;

    -- begin_sessions.sql
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
        FROM audit_log AS a
        LEFT JOIN audit_log AS e
            ON e.session_id = a.session_id AND e.session_id IS NOT NULL AND e.action = 'ended'
        WHERE a.id > head AND a.id <= 9223372036854775807 AND a.action = 'admitted'
        ON CONFLICT (id) DO NOTHING;
    END IF;
END;
$$;
