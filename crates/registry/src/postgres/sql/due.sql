-- When bucket $1 has something to sweep, at the earliest; null: nothing is in it. And whether it is served.
SELECT b.epoch, b.serving, (SELECT min(p.due) FROM registry.pools p WHERE p.bucket = b.bucket) AS due
FROM registry.buckets b WHERE b.bucket = $1
