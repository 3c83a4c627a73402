-- Finds the runs of a session.
SELECT key FROM runs WHERE ns = ?1 AND session = ?2;
