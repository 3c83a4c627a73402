-- Reads all heads of a namespace.
SELECT * FROM runs WHERE ns = ?1;
