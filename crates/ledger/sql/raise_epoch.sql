-- Raises the epoch of every bucket and notes which registry serves it. $1 registry identity
UPDATE buckets SET epoch = epoch + 1, registry_identity = $1 RETURNING epoch
