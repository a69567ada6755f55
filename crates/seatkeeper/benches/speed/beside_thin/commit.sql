INSERT INTO commits (id) VALUES ($1);
