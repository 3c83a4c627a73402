-- Finds runs of one state that ended long ago; not the last of a session, whose state the next run
-- starts from.
SELECT key FROM runs
WHERE ns = ?1 AND status = ?2 AND finished_ms IS NOT NULL AND finished_ms <= ?3
    AND NOT EXISTS (
        SELECT 1 FROM sessions
        WHERE sessions.ns = runs.ns AND sessions.id = runs.session AND sessions.last = runs.key
    )
ORDER BY finished_ms LIMIT ?4;
