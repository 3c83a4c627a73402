-- Finds the run whose state the next one of a session starts from.
SELECT runs.id FROM sessions JOIN runs ON runs.key = sessions.last
WHERE sessions.ns = ?1 AND sessions.id = ?2;
