-- What a decision on a pool has to see, with a turn on its bucket until the transaction is over; see registry.look. A
-- session in another bucket is none.
SELECT * FROM registry.look($1, $2, $3, $4, (
    SELECT s.id FROM registry.sessions s JOIN registry.pools p USING (pool) WHERE s.id = $5 AND p.bucket = $1
), $6, $7, $8)
