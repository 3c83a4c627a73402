-- Finds the last place of a session's order.
SELECT max(turn) FROM runs WHERE ns = ?1 AND session = ?2 AND turn > 0;
