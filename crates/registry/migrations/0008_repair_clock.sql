-- Sets registry time back to p_to, the true time, after a wrong time was stored. Every session with heartbeats gets
-- p_to as the last heartbeat, and time restarts once a node trusts the clock. For a registry that no node serves.
-- Returns the latest time before the repair, and the number of events that wait for the ledger. Changes
-- nothing while events wait, or if the latest time is not later than p_to.
CREATE FUNCTION registry.repair_clock(p_to bigint) RETURNS TABLE (told bigint, waiting bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    SELECT greatest(t.latest, t.latest_lasting) INTO STRICT told FROM registry.told t FOR UPDATE;
    -- The fence rejects later writes of steps decided before the repair.
    UPDATE registry.buckets b SET fence = b.fence + 1;
    SELECT greatest(told, max(b.latest)) INTO STRICT told FROM registry.buckets b;
    SELECT coalesce(sum(b.position - a.position), 0)::bigint INTO STRICT waiting
    FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
    WHERE b.serving;
    IF waiting = 0 AND told > p_to THEN
        UPDATE registry.buckets b SET latest = least(b.latest, p_to);
        -- Sessions of the lasting section have no heartbeats, and keep their ends. A session that started after
        -- p_to lasts one TTL from p_to.
        UPDATE registry.sessions s SET last_heartbeat = p_to
        FROM registry.pools p
        WHERE s.pool = p.pool AND (p.bucket < 256 OR s.last_heartbeat > p_to);
        UPDATE registry.pools p SET
            due = least(p.due, p_to),
            empty_since = CASE WHEN p.empty_since > p_to THEN p_to ELSE p.empty_since END,
            denials = NULL;
        -- A subscription has other terms before the start, until the end, and after the end. The next claim brings the
        -- terms of the true time.
        UPDATE registry.pools p SET terms_version = NULL, seats = NULL, ttl = NULL, ends_at = NULL, closed = NULL
        WHERE p.kind IN ('subscriber', 'group');
        UPDATE registry.told t SET latest = p_to, latest_lasting = p_to, trusted_until = p_to;
    END IF;
    RETURN NEXT;
END
$$;
