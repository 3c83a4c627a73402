-- Reads all that is stored of a session itself.
SELECT * FROM sessions WHERE ns = ?1 AND id = ?2;
