-- Finds who is active in a session: the first of its order.
SELECT turn, key FROM runs
WHERE ns = ?1 AND session = ?2 AND turn > 0 ORDER BY turn LIMIT 1;
