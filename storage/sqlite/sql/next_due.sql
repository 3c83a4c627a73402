-- Finds when the next timer comes.
SELECT min(due_ms) FROM runs WHERE ns = ?1 AND due_ms IS NOT NULL;
