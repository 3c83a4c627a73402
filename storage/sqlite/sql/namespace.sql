-- Finds the number of a namespace.
SELECT ns FROM namespaces WHERE name = ?1;
