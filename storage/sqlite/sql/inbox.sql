-- Reads the answers that wait for a run, in the order they came.
SELECT key, record FROM inbox WHERE run = ?1 ORDER BY row;
