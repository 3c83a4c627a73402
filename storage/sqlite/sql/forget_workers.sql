-- Deletes the workers that gave no sign for long.
DELETE FROM workers WHERE ns = ?1 AND seen_ms < ?2;
