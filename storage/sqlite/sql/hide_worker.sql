-- Takes a worker off the list; the nonces of its claims stay known until it is forgotten.
UPDATE workers SET record = NULL WHERE ns = ?1 AND id = ?2;
