-- Reads the newest snapshot of a run.
SELECT body FROM snapshots WHERE run = ?1;
