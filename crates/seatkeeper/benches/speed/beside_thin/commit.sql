-- Commits one row. $1 id
INSERT INTO commits (id) VALUES ($1);
