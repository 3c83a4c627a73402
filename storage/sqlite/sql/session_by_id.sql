-- Reads a session.
SELECT id, graph FROM sessions WHERE ns = ?1 AND id = ?2;
