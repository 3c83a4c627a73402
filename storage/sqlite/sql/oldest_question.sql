-- Finds the question of a run that opened first.
SELECT id FROM interrupts WHERE run = ?1 ORDER BY opened_ms, id LIMIT 1;
