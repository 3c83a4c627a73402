-- Deletes the envelope of a run.
DELETE FROM payloads WHERE run = ?1;
