-- Puts an answer into an inbox.
INSERT INTO inbox (run, key, request, record) VALUES (?1, ?2, ?3, ?4);
