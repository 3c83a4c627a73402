-- Reads the head of a run by its id.
SELECT * FROM runs WHERE ns = ?1 AND id = ?2;
