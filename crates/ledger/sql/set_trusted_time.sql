-- Sets the trusted time on record to $1, forward or back.
INSERT INTO trusted_time (id, at) VALUES (1, $1)
ON CONFLICT (id) DO UPDATE SET at = excluded.at
