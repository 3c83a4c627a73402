-- Reads questions of a list after a place.
SELECT at_ms, id, run FROM listed
WHERE ns = ?1 AND list = ?2 AND (at_ms, id, run) > (?3, ?4, ?5) ORDER BY at_ms, id, run LIMIT ?6;
