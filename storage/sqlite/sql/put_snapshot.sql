-- Replaces the snapshot of a run.
INSERT INTO snapshots (run, body) VALUES (?1, ?2)
ON CONFLICT (run) DO UPDATE SET body = excluded.body;
