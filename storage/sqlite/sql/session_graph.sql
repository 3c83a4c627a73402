-- Reads the graph of a session.
SELECT graph FROM sessions WHERE ns = ?1 AND id = ?2;
