-- What nodes decide alone, while the registry of a bucket is out of reach, is a stream of its own (stream 'node').
-- What is there already kept to less, and need not be looked at again.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_stream_check,
    ADD CONSTRAINT audit_log_stream_check CHECK (stream IN ('session', 'entitlement', 'plan', 'node')) NOT VALID;
