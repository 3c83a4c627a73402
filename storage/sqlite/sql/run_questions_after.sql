-- Reads open questions of a run after a place, oldest first.
SELECT run, id, opened_ms, body FROM interrupts
WHERE run = ?1 AND (opened_ms, id, run) > (?2, ?3, ?4) ORDER BY opened_ms, id LIMIT ?5;
