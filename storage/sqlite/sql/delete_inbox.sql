-- Empties the inbox of a run.
DELETE FROM inbox WHERE run = ?1;
