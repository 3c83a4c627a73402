-- Finds the runs whose lease ended at some time or before.
SELECT key FROM runs
WHERE ns = ?1 AND worker IS NOT NULL AND lease_end_ms <= ?2 ORDER BY lease_end_ms, key LIMIT ?3;
