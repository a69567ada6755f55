-- Puts a session's beginning and its end on record for less: most of what either cost was index entries.

-- Before anything is read, and in the order in which batches take them: nobody who writes meanwhile is waited for by one
-- of the tables and waits for the other. Whoever reads for long, as a backup does, is not waited for long: all who write
-- would wait as well.
SET LOCAL lock_timeout = '4s';
LOCK TABLE audit_log, sessions IN ACCESS EXCLUSIVE MODE;

-- The sessions that are live on record: one for each holder of a pool. They stand apart from `sessions`, of which no index
-- names what an end changes. So PostgreSQL writes the ended session beside the live one, and none of the indexes that it
-- is found by anew. Whoever begins, ends or deletes a session changes them as well, also a node of the version before
-- this one.
CREATE TABLE live_sessions (
    -- The eighth byte of the session's id, which names it.
    bucket     BYTEA NOT NULL,
    session_id UUID  NOT NULL,
    tenant_id  TEXT  COLLATE "C" NOT NULL,
    pool_kind  TEXT  COLLATE "C" NOT NULL,
    pool_id    TEXT  COLLATE "C" NOT NULL,
    holder     TEXT  COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, session_id),
    UNIQUE (tenant_id, pool_kind, pool_id, holder)
);

CREATE FUNCTION add_live_sessions() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO live_sessions (bucket, session_id, tenant_id, pool_kind, pool_id, holder)
    SELECT substr(id, 8, 1), id, tenant_id, pool_kind, pool_id, holder FROM begun WHERE ended_at IS NULL;
    RETURN NULL;
END;
$$;

CREATE FUNCTION drop_live_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM live_sessions WHERE bucket = substr(OLD.id, 8, 1) AND session_id = OLD.id;
    RETURN NULL;
END;
$$;

CREATE TRIGGER sessions_begin AFTER INSERT ON sessions REFERENCING NEW TABLE AS begun
FOR EACH STATEMENT EXECUTE FUNCTION add_live_sessions();

-- By row: all that most changes of sessions do is note heartbeats, and those cost nothing so.
CREATE TRIGGER sessions_end AFTER UPDATE OF ended_at ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION drop_live_session();

CREATE TRIGGER sessions_gone AFTER DELETE ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NULL) EXECUTE FUNCTION drop_live_session();

-- No change of a session names these. After the change: a look before it would lock each session by itself first.
CREATE FUNCTION refuse_change_of_session() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'whose a session is never changes, and one that is over stays over';
END;
$$;

CREATE TRIGGER sessions_stay AFTER UPDATE OF id, tenant_id, pool_kind, pool_id, holder ON sessions
FOR EACH ROW EXECUTE FUNCTION refuse_change_of_session();

CREATE TRIGGER sessions_stay_over AFTER UPDATE OF ended_at ON sessions
FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL AND NEW.ended_at IS NULL) EXECUTE FUNCTION refuse_change_of_session();

INSERT INTO live_sessions (bucket, session_id, tenant_id, pool_kind, pool_id, holder)
SELECT substr(id, 8, 1), id, tenant_id, pool_kind, pool_id, holder FROM sessions WHERE ended_at IS NULL;

DROP INDEX sessions_live;
DROP INDEX sessions_live_by_bucket;

-- The sessions that a window of usage may need: those that are live, in the order of its batches, and those that ended
-- after its start.
DROP INDEX sessions_metered_live;
DROP INDEX sessions_metered_ended;
CREATE INDEX live_sessions_metered ON live_sessions (tenant_id, session_id) WHERE pool_kind = 'capacity';
CREATE INDEX audit_log_metered_ends ON audit_log (at) WHERE pool_kind = 'capacity' AND action = 'ended';

-- Most records begin or end a session: whoever looks for one of these actions finds it among all that the tenant has.
-- That an id is above 0 is always true. It keeps the index of tenants from the planner, but for statements that say the
-- same: without statistics of a young table it might find places in a pool's record by their tenant, and keep reading
-- through all that the tenant has.
DROP INDEX audit_log_by_action;
DROP INDEX audit_log_by_tenant;
CREATE INDEX audit_log_by_action ON audit_log (tenant_id, action, id) WHERE action NOT IN ('admitted', 'ended');
CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, id) WHERE id > 0;

-- What tells sessions apart comes first, for it is compared first.
DROP INDEX sessions_by_holder;
DROP INDEX sessions_by_user;
DROP INDEX sessions_by_ip;
CREATE INDEX sessions_by_holder ON sessions (holder, tenant_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, tenant_id, id);
CREATE INDEX sessions_by_ip ON sessions (ip, tenant_id, id) WHERE ip IS NOT NULL;

-- Puts events on record as before, by plans that a connection keeps. Such a plan knows nothing of what it is told. Of an
-- array it expects ten elements, but of the newest records a part of the whole log; so ends and beginnings are taken from
-- the arrays. That each finds its few rows by an index, the connection sees to: it must be one that writes (`WRITING` in
-- src/database/postgres.rs). Each statement sees what was committed before it began.
--
-- Its arrays are, in turn:
-- 1. buckets, and the epoch that events of each are of;
-- 2. the places that events follow on, but for those of the batch itself;
-- 3. the events, a column an array.
--
-- Returns the numbers, from 1, of those events that were on record before. Refuses all with SQLSTATE SK001 if one is of
-- another epoch than its bucket, or does not continue what is on record.
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
        -- recorded_event.sql; something is on record at each place by now.
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

    -- end_sessions.sql, for the events that are new
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

    -- begin_sessions.sql, likewise
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
