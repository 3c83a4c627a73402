-- Finds the key of a run, whatever else of it can be read.
SELECT key FROM runs WHERE ns = ?1 AND id = ?2;
