-- Deletes the partial results of a run.
DELETE FROM partials WHERE run = ?1;
