-- Reads the open questions of a run, oldest first.
SELECT id, gate, args_hash, votes FROM interrupts WHERE run = ?1 ORDER BY opened_ms, id;
