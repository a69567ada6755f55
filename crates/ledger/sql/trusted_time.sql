-- Reads the trusted time on record.
SELECT at FROM trusted_time
