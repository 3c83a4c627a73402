-- Reads the order of a session: the active run, then those that wait.
SELECT id FROM runs WHERE ns = ?1 AND session = ?2 AND turn > 0 ORDER BY turn;
