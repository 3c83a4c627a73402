-- Finds entries of lists that no question has.
SELECT list, at_ms, id, run FROM listed WHERE ns = ?1
EXCEPT SELECT list, at_ms, id, run FROM placed WHERE ns = ?1 LIMIT ?2;
