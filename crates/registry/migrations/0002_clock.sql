-- The registry's clock: the server's, in milliseconds since the Unix epoch.
CREATE FUNCTION registry.clock() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Returns the latest time read in the section of a bucket.
CREATE FUNCTION registry.told_in(p_bucket smallint, p_told registry.told) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN p_bucket < 256 THEN p_told.latest ELSE p_told.latest_lasting END $$;

-- Returns the time of a step in a bucket: the clock's while the clock is trusted, and never earlier than the
-- latest time read. After a clock was set back or jumped, time stands still, and no session expires. The
-- clock is read once, because it may jump between two readings.
CREATE FUNCTION registry.time_in(p_bucket smallint) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT greatest(
        CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, registry.told_in(p_bucket, t))
    FROM registry.buckets b, registry.told t, (SELECT registry.clock() AS clock OFFSET 0) c
    WHERE b.bucket = p_bucket
$$;

-- Reads the time of a section, and makes sure that no later step of the section has an earlier time. Prolongs the
-- clock's lease, if not over. A bucket's own time may be later: a rebuild brings dates of another store, whose clock may
-- be ahead. These dates hold for the bucket alone: the time of every other bucket would jump, and sessions would expire.
--   p_section     first bucket of the section
--   p_not_after   the latest plausible reading of the clock, and the latest end of the lease, so that a statement
--                 that arrives late does not prolong the lease late; 0: the caller does not keep the lease
--   p_lease       duration of the lease
-- Returns the time, the clock, the trust in the clock, and the latest time of any bucket of the section.
CREATE FUNCTION registry.tell_time(p_section smallint, p_not_after bigint, p_lease bigint)
RETURNS TABLE (now bigint, clock bigint, is_trusted boolean, latest bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_clock bigint;
    v_told registry.told;
BEGIN
    -- A crash may lose the update. Decisions by the lost time are then lost as well, or kept in a bucket's
    -- row.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO STRICT v_told FROM registry.told t FOR UPDATE;
    v_clock := registry.clock();
    is_trusted := v_clock <= v_told.trusted_until;
    IF is_trusted THEN
        v_told.latest := greatest(v_told.latest, v_clock);
        v_told.latest_lasting := greatest(v_told.latest_lasting, v_clock);
        IF v_clock <= p_not_after THEN
            v_told.trusted_until := least(v_clock + p_lease, greatest(v_told.trusted_until, p_not_after));
        END IF;
    END IF;
    UPDATE registry.told t SET
        latest = v_told.latest, latest_lasting = v_told.latest_lasting, trusted_until = v_told.trusted_until;
    now := registry.told_in(p_section, v_told);
    clock := v_clock;
    SELECT greatest(now, max(b.latest)) INTO STRICT latest
    FROM registry.buckets b
    WHERE b.bucket >= p_section AND b.bucket < p_section + 256;
    RETURN NEXT;
END
$$;
