-- How far each stream of the audit log goes, but for what nodes decided alone: records that are missing at the end of a
-- stream are found by it. A trigger keeps it, in the transaction that appends.
CREATE TABLE audit_heads (
    tenant_id TEXT    NOT NULL,
    pool_kind TEXT    NOT NULL,
    pool_id   TEXT    NOT NULL,
    stream    TEXT    NOT NULL CHECK (stream IN ('session', 'entitlement', 'plan')),
    seq       INTEGER NOT NULL CHECK (seq >= 1),
    PRIMARY KEY (tenant_id, pool_kind, pool_id, stream)
) STRICT, WITHOUT ROWID;

INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
SELECT tenant_id, pool_kind, pool_id, stream, MAX(seq)
FROM (
    SELECT tenant_id, pool_kind, pool_id, stream, seq FROM audit_log WHERE stream <> 'node'
    UNION ALL
    SELECT tenant_id, pool_kind, pool_id, 'session' AS stream, seq FROM audit_cuts
) AS known
GROUP BY tenant_id, pool_kind, pool_id, stream;

CREATE TRIGGER audit_log_moves_head AFTER INSERT ON audit_log WHEN NEW.stream <> 'node'
BEGIN
    INSERT INTO audit_heads (tenant_id, pool_kind, pool_id, stream, seq)
    VALUES (NEW.tenant_id, NEW.pool_kind, NEW.pool_id, NEW.stream, NEW.seq)
    ON CONFLICT (tenant_id, pool_kind, pool_id, stream) DO UPDATE SET seq = excluded.seq
    WHERE excluded.seq > audit_heads.seq;
END;
