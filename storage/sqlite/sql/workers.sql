-- Reads the workers that gave a sign of life.
SELECT id, record FROM workers WHERE ns = ?1 AND record IS NOT NULL ORDER BY id;
