-- Finds sessions that start from a run which is not there.
SELECT id FROM sessions
WHERE ns = ?1 AND last IS NOT NULL AND last NOT IN (SELECT key FROM runs) LIMIT ?2;
