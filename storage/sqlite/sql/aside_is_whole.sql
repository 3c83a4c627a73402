-- Asks whether all parts of a run are there.
SELECT EXISTS (SELECT 1 FROM payloads WHERE run = runs.key)
    AND seq = (SELECT count(*) FROM events WHERE run = runs.key)
    AND (snapshot_seq = 0 OR EXISTS (SELECT 1 FROM snapshots WHERE run = runs.key))
FROM runs WHERE key = ?1;
