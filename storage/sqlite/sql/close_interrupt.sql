-- Closes a question.
DELETE FROM interrupts WHERE run = ?1 AND id = ?2;
