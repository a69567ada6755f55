-- Reads registry time of the section that starts at bucket $1, the server's clock, the trust in the clock, and the latest
-- time of any bucket of the section: see registry.tell_time. The last column is the time of bucket $4.
SELECT
    now, clock, is_trusted, latest,
    greatest(now, (SELECT b.latest FROM registry.buckets b WHERE b.bucket = $4)) AS now_in_bucket
FROM registry.tell_time($1, $2, $3)
