-- Finds the first claimable runs of a lane that have one priority.
SELECT key FROM runs
WHERE lane = ?1 AND priority = ?2 AND ready = 1 ORDER BY key LIMIT ?3;
