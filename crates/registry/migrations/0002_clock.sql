-- The registry's clock: this server's, in milliseconds since the Unix epoch.
CREATE FUNCTION registry.clock() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- The time of a step in a bucket: the clock's while it is trusted, and never earlier than the latest time that anybody
-- has seen. So time stands still where the clock was set back, or jumped, and nothing is over that was not before.
-- The clock is read once, for it may jump between two readings.
CREATE FUNCTION registry.time_in(p_bucket smallint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, t.latest)
    FROM registry.buckets b, registry.told t, (SELECT registry.clock() AS clock OFFSET 0) c
    WHERE b.bucket = p_bucket
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
