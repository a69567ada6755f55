-- Checks that bucket $1 is under rebuild for epoch $2, and holds the bucket's lock: see registry.rebuild_goes_on.
SELECT registry.rebuild_goes_on($1, $2)
