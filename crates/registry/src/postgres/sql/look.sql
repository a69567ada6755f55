-- What a decision on a pool has to see, with a turn on its bucket until the transaction is over; see registry.look.
SELECT * FROM registry.look($1, $2, $3, $4, $5, $6, $7, $8)
