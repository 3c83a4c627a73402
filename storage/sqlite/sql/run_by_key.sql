-- Reads the head of a run by its key.
SELECT * FROM runs WHERE key = ?1;
