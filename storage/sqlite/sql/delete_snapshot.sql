-- Deletes the snapshot of a run.
DELETE FROM snapshots WHERE run = ?1;
