-- Finds questions that are missing in a list.
SELECT list, at_ms, id, run FROM placed WHERE ns = ?1
EXCEPT SELECT list, at_ms, id, run FROM listed WHERE ns = ?1 LIMIT ?2;
