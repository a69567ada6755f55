-- The registry's clock: this server's, in milliseconds since the Unix epoch.
CREATE FUNCTION registry.clock() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- The time of a step in a bucket: the clock's, or the latest time that anybody has seen while the clock is
-- behind that. So time stands still where the clock was set back, and nothing is over that was not before.
CREATE FUNCTION registry.time_in(p_bucket smallint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(registry.clock(), b.latest, t.latest)
    FROM registry.buckets b, registry.told t
    WHERE b.bucket = p_bucket
$$;

-- Tells the time, and sees to it that no step that begins after this has an earlier one.
-- Returns it, and by how much the clock is behind it.
CREATE FUNCTION registry.tell_time() RETURNS TABLE (now bigint, behind bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
BEGIN
    -- A crash may forget it: what was decided by it is forgotten then as well, or in a bucket's row.
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM 1 FROM registry.told FOR UPDATE;
    v_clock := registry.clock();
    RETURN QUERY
        UPDATE registry.told SET latest = greatest(latest, v_clock, (SELECT max(b.latest) FROM registry.buckets b))
        RETURNING latest, latest - v_clock;
END
$$;
