-- Finds the runs whose timer has come.
SELECT key FROM runs
WHERE ns = ?1 AND due_ms IS NOT NULL AND due_ms <= ?2 ORDER BY due_ms, key LIMIT ?3;
