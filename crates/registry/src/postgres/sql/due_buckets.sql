-- The buckets from $1 on, a section of them, that have something to sweep by now, and the epoch in which each is served.
SELECT b.bucket, b.epoch
FROM registry.buckets b CROSS JOIN registry.told t CROSS JOIN (SELECT registry.clock() AS clock OFFSET 0) c
WHERE b.bucket BETWEEN $1 AND $1 + 255 AND b.serving
    AND (SELECT min(p.due) FROM registry.pools p WHERE p.bucket = b.bucket)
        <= greatest(CASE WHEN c.clock <= t.trusted_until THEN c.clock END, b.latest, t.latest)
