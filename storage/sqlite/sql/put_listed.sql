-- Puts a question in a list.
INSERT INTO listed (ns, list, at_ms, id, run) VALUES (?1, ?2, ?3, ?4, ?5);
