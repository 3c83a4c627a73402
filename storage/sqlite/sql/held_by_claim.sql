-- Finds the runs that a worker still holds from one claim.
SELECT key FROM runs
WHERE ns = ?1 AND worker = ?2 AND nonce = ?3 AND worker IS NOT NULL ORDER BY priority DESC, key;
