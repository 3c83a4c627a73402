-- Deletes the head of a run.
DELETE FROM runs WHERE key = ?1;
