-- Makes every job due at $1 at the latest, and lets every lock end at $1 at the latest.
UPDATE jobs
SET next_run_at = CASE WHEN next_run_at > $1 THEN $1 ELSE next_run_at END,
    retry_at = CASE WHEN retry_at > $1 THEN $1 ELSE retry_at END,
    last_run_at = CASE WHEN last_run_at > $1 THEN $1 ELSE last_run_at END,
    locked_at = CASE WHEN locked_at > $1 THEN $1 ELSE locked_at END,
    locked_until = CASE WHEN locked_until > $1 THEN $1 ELSE locked_until END
