-- Finds the number of the newest partial result of a run.
SELECT max(n) FROM partials WHERE run = ?1;
