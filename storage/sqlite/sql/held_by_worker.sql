-- Finds the runs that a worker holds.
SELECT key, id FROM runs
WHERE ns = ?1 AND worker = ?2 AND worker IS NOT NULL ORDER BY key;
