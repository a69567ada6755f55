-- Deletes the events of a bucket up to a position. Returns the number of deleted events.
CREATE FUNCTION registry.acknowledge(p_bucket smallint, p_epoch bigint, p_position bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_before bigint;
    v_end bigint;
BEGIN
    -- A crash may lose the update, and the events are read again.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT position INTO STRICT v_before FROM registry.acknowledged WHERE bucket = p_bucket FOR UPDATE;
    SELECT position INTO v_end FROM registry.buckets WHERE bucket = p_bucket AND epoch = p_epoch;
    v_end := least(v_end, p_position);
    IF v_end IS NULL OR v_end <= v_before THEN
        RETURN 0;
    END IF;
    UPDATE registry.acknowledged SET position = v_end WHERE bucket = p_bucket;
    DELETE FROM registry.journal WHERE bucket = p_bucket AND position <= v_end;
    RETURN v_end - v_before;
END
$$;

-- Returns the end of a bucket's journal, after every change under way is committed or rolled back.
CREATE FUNCTION registry.journal_end(p_bucket smallint) RETURNS TABLE (epoch bigint, serving boolean, "position" bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    -- A crash may lose the update: every change under way is rolled back by a crash as well.
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY
        UPDATE registry.buckets b SET fence = b.fence + 1 WHERE b.bucket = p_bucket
        RETURNING b.epoch, b.serving, b.position;
END
$$;

-- Identifies the database: the cluster, its timeline, and the object id of the journal. A promotion and a recovery to a
-- point in time change the timeline; a restore creates a new table. If a service hides its timeline, the other two parts
-- identify the database.
CREATE FUNCTION registry.identity() RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_timeline text;
BEGIN
    BEGIN
        v_timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    EXCEPTION
        WHEN feature_not_supported OR insufficient_privilege OR object_not_in_prerequisite_state THEN
            v_timeline := 'hidden';
    END;
    RETURN format(
        '%s/%s/%s', (SELECT c.system_identifier FROM pg_control_system() c), v_timeline,
        'registry.journal'::regclass::oid);
END
$$;
