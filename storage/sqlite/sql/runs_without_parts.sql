-- Finds runs whose parts are not all there.
SELECT id FROM runs
WHERE ns = ?1 AND (
    NOT EXISTS (SELECT 1 FROM payloads WHERE run = runs.key)
    OR seq <> (SELECT count(*) FROM events WHERE run = runs.key)
    OR (snapshot_seq > 0 AND NOT EXISTS (SELECT 1 FROM snapshots WHERE run = runs.key))
    OR open_count <> (SELECT count(*) FROM interrupts WHERE run = runs.key)
    OR inbox_count <> (SELECT count(*) FROM inbox WHERE run = runs.key)
    OR (finished_ms IS NOT NULL AND (open_count > 0 OR inbox_count > 0))
)
LIMIT ?2;
