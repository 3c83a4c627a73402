-- Deletes the journal of a run.
DELETE FROM events WHERE run = ?1;
