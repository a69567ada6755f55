-- The lasting section: filled and served by the first node, and closed by an embedded server, whose memory then has every
-- session. The section has no epochs, so sessions from before would be stale afterwards.

-- Closes the section: no step changes it, and none decided before is written. Returns the number of its events that wait for
-- the ledger; the caller then rolls back.
CREATE FUNCTION registry.close_lasting() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_waiting bigint;
BEGIN
    PERFORM 1 FROM registry.buckets WHERE bucket >= 256 ORDER BY bucket FOR UPDATE;
    UPDATE registry.buckets SET serving = false, fence = fence + 1 WHERE bucket >= 256 AND serving;
    SELECT coalesce(sum(b.position - a.position), 0)::bigint INTO STRICT v_waiting
    FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
    WHERE b.bucket >= 256;
    RETURN v_waiting;
END
$$;

-- Returns whether the section is served.
CREATE FUNCTION registry.is_lasting_served() RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT bool_and(serving) FROM registry.buckets WHERE bucket >= 256
$$;

-- Locks the section until the end of the transaction, and empties the section unless it is served. Returns 'served', 'empty', or 'in use'
-- while another node fills the section, or an embedded server uses the ledger: the second lock is that of the ledger
-- (`lock_sole_use.sql`), and is shared until the end of the transaction.
CREATE FUNCTION registry.begin_lasting() RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(8315159439655396721)
        OR NOT pg_try_advisory_xact_lock_shared(8315159439655396720)
    THEN
        RETURN 'in use';
    END IF;
    PERFORM 1 FROM registry.buckets WHERE bucket >= 256 ORDER BY bucket FOR UPDATE;
    IF registry.is_lasting_served() THEN
        RETURN 'served';
    END IF;
    DELETE FROM registry.sessions s USING registry.pools p WHERE p.bucket >= 256 AND s.pool = p.pool;
    DELETE FROM registry.pools p WHERE p.bucket >= 256;
    RETURN 'empty';
END
$$;
