-- Lifts the time of bucket $1, which is being rebuilt for epoch $2, to $3 at least; see registry.rebuild_not_before.
SELECT registry.rebuild_not_before($1, $2, $3)
