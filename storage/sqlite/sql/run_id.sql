-- Reads the id of a run by its key.
SELECT id FROM runs WHERE key = ?1;
