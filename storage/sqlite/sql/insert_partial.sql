-- Stores a partial result.
INSERT INTO partials (run, n, after, body) VALUES (?1, ?2, ?3, ?4);
