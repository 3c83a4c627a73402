-- Finds runs whose parts are not all there, but for those that failed because of it.
SELECT id, key FROM runs
WHERE ns = ?1 AND NOT (status = 'failed' AND reason = 'undecodable') AND (
    NOT EXISTS (SELECT 1 FROM payloads WHERE run = runs.key)
    OR seq <> (SELECT count(*) FROM events WHERE run = runs.key)
    OR (snapshot_seq > 0 AND NOT EXISTS (SELECT 1 FROM snapshots WHERE run = runs.key))
)
LIMIT ?2;
