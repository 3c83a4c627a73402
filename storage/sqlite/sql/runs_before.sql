-- Reads heads of runs, newest first, before a place.
SELECT * FROM runs
WHERE ns = ?1 AND (created_ms, id) < (?2, ?3) ORDER BY created_ms DESC, id DESC LIMIT ?4;
