-- Session $1 of license $2 began or ended: $3.
INSERT INTO audit (session, license, action, at) VALUES ($1, $2, $3, clock_timestamp())
