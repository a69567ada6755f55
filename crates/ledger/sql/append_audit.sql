-- Appends records. A record whose number is taken is skipped, so appending is idempotent.
-- `Entry` in `src/audit/entry.rs` lists the columns: a group of values per record stands at `/* rows */`.
INSERT INTO audit_log (/* columns */)
VALUES /* rows */
ON CONFLICT (tenant_id, pool_kind, pool_id, stream, seq) DO NOTHING
