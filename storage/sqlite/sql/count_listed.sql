-- Counts the questions of a list, up to a number.
SELECT count(*) FROM (SELECT 1 FROM listed WHERE ns = ?1 AND list = ?2 LIMIT ?3);
