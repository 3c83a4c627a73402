-- Reads the envelope of a run.
SELECT body FROM payloads WHERE run = ?1;
