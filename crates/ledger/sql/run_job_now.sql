-- Makes a job due at once, and keeps its grid. $1 name, $2 now
UPDATE jobs SET retry_at = $2 WHERE name = $1
