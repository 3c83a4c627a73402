-- Counts the runs of a session.
SELECT count(*) FROM runs WHERE ns = ?1 AND session = ?2;
