-- Applies a batch of events atomically, in one call: the caller waits for one answer instead of nine. The
-- function runs the statements named in its comments, in the same order. Each statement sees everything
-- committed before the statement began.
--
-- A new column of `audit_log` needs no change here. A change of the body is a migration that replaces the function.
-- A change of the arguments is a migration that adds a function: nodes of the previous version go on with the old
-- function, and a later migration drops the old function.
--
-- Plans are generic and cached by the connection. A generic plan expects ten elements in an array, but a
-- fraction of the whole log for the newest records, so ends and beginnings of sessions are read from the
-- arrays. Index lookups are forced by the connection, which must be a write connection (`WRITING` in
-- `src/database/postgres.rs`).
--
-- The arguments, in order:
-- 1. the buckets in ascending order, and the epoch of the events in each bucket;
-- 2. the numbers preceding the events, except for numbers inside the batch;
-- 3. the events, as rows of table `audit_log` without an id (`Entry` in `src/audit/entry.rs`).
--
-- Returns the positions, from 1, of the events already on record. Refuses the batch with SQLSTATE SK001 if
-- the epoch of an event is not its bucket's, or an event does not continue the pool's record, or the batch
-- adds an event up to the cut of its pool.
CREATE OR REPLACE FUNCTION apply_events(
    bucket_ids     BIGINT[],
    bucket_epochs  BIGINT[],

    tenants_before TEXT[],
    kinds_before   TEXT[],
    pools_before   TEXT[],
    seqs_before    BIGINT[],

    events         audit_log[]
) RETURNS SETOF BIGINT LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    epochs     BIGINT[];
    is_missing BOOLEAN;
    head       BIGINT;
    appended   BIGINT;
    place      RECORD;
    -- Not worth a statement for a change that a single event cannot make.
    is_batch BOOLEAN := cardinality(events) > 1;
    are_new  BOOLEAN[] := array_fill(TRUE, ARRAY[cardinality(events)]);
BEGIN
    -- hold_buckets.sql; after a wait for a lock, the row is the newest.
    SELECT array_agg(epoch) INTO epochs
    FROM (SELECT epoch FROM buckets WHERE id = ANY (bucket_ids) ORDER BY id FOR NO KEY UPDATE) AS held;
    IF epochs IS DISTINCT FROM bucket_epochs THEN
        RAISE EXCEPTION 'events are of another epoch than their buckets' USING ERRCODE = 'SK001';
    END IF;

    -- missing_place.sql and audit_head.sql, in one statement to save time
    SELECT
        EXISTS (
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
        ),
        (SELECT COALESCE(MAX(id), 0) FROM audit_log)
    INTO is_missing, head;
    IF is_missing THEN
        RAISE EXCEPTION 'events do not follow on what is on record' USING ERRCODE = 'SK001';
    END IF;

    -- append_audit.sql; the clause replaces the missing ids.
    INSERT INTO audit_log OVERRIDING USER VALUE
    SELECT * FROM unnest(events)
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream, seq) DO NOTHING;
    GET DIAGNOSTICS appended = ROW_COUNT;

    -- pool_cuts.sql, after the append: an append may wait for a purge, and then add a record that the purge has
    -- deleted. `OFFSET 0` keeps the subquery: the plan reads the cut of each event by key, never all cuts.
    IF appended > 0 AND EXISTS (
        SELECT FROM unnest(events) AS event
        WHERE EXISTS (
            SELECT FROM audit_cuts AS c
            WHERE c.tenant_id = event.tenant_id AND c.pool_kind = event.pool_kind
              AND c.pool_id = event.pool_id AND c.seq >= event.seq
            OFFSET 0
        )
    ) THEN
        RAISE EXCEPTION 'retention has deleted the record of an event' USING ERRCODE = 'SK001';
    END IF;

    IF appended < cardinality(events) THEN
        -- recorded_event.sql; every event has a record by now.
        FOR place IN
            SELECT
                event.ordinality AS number, recorded.id <= head AS was_recorded,
                (event.at, event.action, event.session_id)
                    IS DISTINCT FROM (recorded.at, recorded.action, recorded.session_id) AS is_taken
            FROM unnest(events) WITH ORDINALITY AS event
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
    IF is_batch OR (events[1]).action = 'ended' THEN
        UPDATE sessions
        SET ended_at = e.at,
            end_reason = e.reason,
            last_heartbeat_at = e.last_heartbeat_at,
            expires_at = e.expires_at
        FROM unnest(events) WITH ORDINALITY AS e
        WHERE are_new[e.ordinality] AND e.action = 'ended'
          AND sessions.id = e.session_id
          AND CASE WHEN sessions.end_reason IS NULL THEN TRUE ELSE FALSE END;
    END IF;

    -- begin_sessions.sql, for new events
    IF is_batch OR (events[1]).action = 'admitted' THEN
        INSERT INTO sessions (
            id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
            expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type, device_name
        )
        SELECT
            a.session_id, a.tenant_id, a.pool_kind, a.pool_id, a.holder, a.user_id, a.tier, a.at,
            COALESCE(e.last_heartbeat_at, a.last_heartbeat_at), a.ttl_ms,
            COALESCE(e.expires_at, a.expires_at), e.at, e.reason, a.ip, a.user_agent, a.metadata,
            a.device_type, a.device_name
        FROM unnest(events) WITH ORDINALITY AS a
        LEFT JOIN audit_log AS e
            ON e.session_id = a.session_id AND e.session_id IS NOT NULL AND e.action = 'ended'
        WHERE are_new[a.ordinality] AND a.action = 'admitted'
        ON CONFLICT (id) DO NOTHING;
    END IF;
END;
$$;
