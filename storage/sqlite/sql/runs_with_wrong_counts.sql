-- Finds runs that count their questions or answers wrong, or have some though they ended.
SELECT id, key FROM runs
WHERE ns = ?1 AND (
    open_count <> (SELECT count(*) FROM interrupts WHERE run = runs.key)
    OR inbox_count <> (SELECT count(*) FROM inbox WHERE run = runs.key)
    OR (finished_ms IS NOT NULL AND (open_count > 0 OR inbox_count > 0))
)
LIMIT ?2;
