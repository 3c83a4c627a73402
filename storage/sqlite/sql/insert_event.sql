-- Appends an event to a journal.
INSERT INTO events (run, n, body) VALUES (?1, ?2, ?3);
