-- Takes a worker off the list.
DELETE FROM workers WHERE ns = ?1 AND id = ?2;
