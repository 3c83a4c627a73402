-- Marks a place to come back to.
SAVEPOINT batch;
