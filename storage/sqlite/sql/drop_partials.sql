-- Drops the oldest partial results of a run.
DELETE FROM partials WHERE run = ?1 AND n <= ?2;
