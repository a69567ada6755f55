-- Session $1 gives its seat of license $2 back.
DELETE FROM sessions WHERE id = $1 AND license = $2
