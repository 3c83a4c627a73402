-- Reads an open question.
SELECT run, id, opened_ms, deadline_ms, lists, body FROM interrupts WHERE run = ?1 AND id = ?2;
