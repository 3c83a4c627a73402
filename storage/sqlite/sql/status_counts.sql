-- Counts the runs in each state.
SELECT status, sum(n) FROM counts WHERE ns = ?1 GROUP BY status;
