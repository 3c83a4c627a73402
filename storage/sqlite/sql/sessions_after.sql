-- Reads sessions in the order of their ids.
SELECT id, graph FROM sessions WHERE ns = ?1 AND id > ?2 ORDER BY id LIMIT ?3;
