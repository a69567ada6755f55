-- What a decision on a pool has to see, without a turn on its bucket; see registry.glimpse.
SELECT * FROM registry.glimpse($1, $2, $3, $4, $5, $6, $7, $8)
