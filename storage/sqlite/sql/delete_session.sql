-- Deletes a session.
DELETE FROM sessions WHERE ns = ?1 AND id = ?2;
