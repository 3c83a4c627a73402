-- Reads the journal of a run from a number on.
SELECT body FROM events WHERE run = ?1 AND n >= ?2 ORDER BY n LIMIT ?3;
