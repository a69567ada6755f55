-- The ledger in which the epoch of each bucket was raised. A standby that was promoted and a backup that was restored have
-- the rows of another ledger, which may have gone on without them: every bucket is raised anew then.
ALTER TABLE buckets ADD COLUMN ledger_identity TEXT;

-- The identity of this ledger: the cluster of databases, its timeline, which a promotion and a recovery to a point in
-- time change, and the table itself, which a restore makes anew. A service that hides its timeline is told apart by the rest.
CREATE FUNCTION ledger_timeline() RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION
    WHEN feature_not_supported OR insufficient_privilege OR object_not_in_prerequisite_state THEN RETURN 'hidden';
END
$$;

CREATE VIEW this_ledger AS
SELECT format('%s/%s/%s', (pg_control_system()).system_identifier, ledger_timeline(), 'buckets'::regclass::oid) AS identity;
