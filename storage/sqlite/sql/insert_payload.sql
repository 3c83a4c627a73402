-- Stores the envelope of a new run.
INSERT INTO payloads (run, body) VALUES (?1, ?2);
