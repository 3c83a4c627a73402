-- Reads partial results of a run after a number.
SELECT n, after, body FROM partials WHERE run = ?1 AND n > ?2 ORDER BY n;
