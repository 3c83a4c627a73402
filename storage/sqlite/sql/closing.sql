-- Finds the runs without an owner that must end.
SELECT key FROM runs
WHERE ns = ?1 AND close_ms IS NOT NULL AND close_ms <= ?2 ORDER BY close_ms, key LIMIT ?3;
