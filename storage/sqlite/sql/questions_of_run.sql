-- Reads the open questions of a run.
SELECT run, id, opened_ms, deadline_ms, lists, body FROM interrupts WHERE run = ?1 ORDER BY id;
