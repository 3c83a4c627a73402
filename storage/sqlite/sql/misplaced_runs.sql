-- Finds runs that stand where their state does not belong.
SELECT id, key FROM runs
WHERE ns = ?1 AND (
    (worker IS NOT NULL) <> (status = 'running')
    OR (status = 'scheduled' AND due_ms IS NULL)
    OR (turn IS NULL AND session IS NOT NULL AND (status = 'queued' OR status = 'running'))
    OR (turn IS NOT NULL AND (session IS NULL OR finished_ms IS NOT NULL))
    OR (finished_ms IS NOT NULL) <> (status IN ('completed', 'failed', 'cancelled'))
    OR ready <> (status = 'queued' AND (session IS NULL OR turn IS (
        SELECT min(other.turn) FROM runs AS other
        WHERE other.ns = runs.ns AND other.session = runs.session AND other.turn > 0
    )))
    OR (session IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM sessions WHERE sessions.ns = runs.ns AND sessions.id = runs.session
    ))
    OR NOT EXISTS (
        SELECT 1 FROM lanes WHERE lanes.lane = runs.lane AND lanes.ns = runs.ns
    )
)
LIMIT ?2;
