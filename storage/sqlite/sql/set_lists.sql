-- Puts a question in other lists.
UPDATE interrupts SET lists = ?3 WHERE run = ?1 AND id = ?2;
