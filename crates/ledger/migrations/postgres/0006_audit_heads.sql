-- How far each stream of the audit log goes, but for what nodes decided alone: records that are missing at the end of a
-- stream are found by it. A trigger keeps it, in the transaction that appends, with one row for each pool of a batch; also
-- for a node of the version before this one.

-- Nobody appends between the reading of the log and the first time that the trigger runs.
SET LOCAL lock_timeout = '4s';
LOCK TABLE audit_log IN SHARE ROW EXCLUSIVE MODE;

-- There is room on each page, so that a head's new row lies beside the old one and no index is touched.
CREATE TABLE audit_heads (
    tenant_id TEXT   COLLATE "C" NOT NULL,
    pool_kind TEXT   COLLATE "C" NOT NULL,
    pool_id   TEXT   COLLATE "C" NOT NULL,
    stream    TEXT   COLLATE "C" NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan')),
    seq       BIGINT NOT NULL CHECK (seq >= 1),
    PRIMARY KEY (tenant_id, pool_kind, pool_id, stream)
) WITH (fillfactor = 70);

INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
SELECT tenant_id, pool_kind, pool_id, stream, MAX(seq)
FROM (
    SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log WHERE stream <> 'node'
    UNION ALL
    SELECT tenant_id, pool_kind, pool_id, 'session' AS stream, seq FROM audit_cuts
) AS known
GROUP BY tenant_id, pool_kind, pool_id, stream;

CREATE FUNCTION move_audit_heads() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
    SELECT tenant_id, pool_kind, pool_id, stream, MAX(seq)
    FROM appended
    WHERE stream <> 'node'
    GROUP BY tenant_id, pool_kind, pool_id, stream
    -- In one order, whoever appends: nobody waits in a circle.
    ORDER BY tenant_id, pool_kind, pool_id, stream
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream) DO UPDATE SET seq = excluded.seq
    WHERE excluded.seq > audit_heads.seq;
    RETURN NULL;
END;
$$;

CREATE TRIGGER audit_log_moves_heads AFTER INSERT ON audit_log REFERENCING NEW TABLE AS appended
FOR EACH STATEMENT EXECUTE FUNCTION move_audit_heads();
