-- Counts the runs that wait in a queue.
SELECT coalesce(sum(n), 0) FROM counts
WHERE ns = ?1 AND queue = ?2 AND status IN ('scheduled', 'queued');
