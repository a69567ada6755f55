-- Reads the keys of release codes, the newest first.
SELECT generation, secret, made_at
FROM release_keys
ORDER BY generation DESC
