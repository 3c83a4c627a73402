-- Takes a question out of a list.
DELETE FROM listed WHERE ns = ?1 AND list = ?2 AND at_ms = ?3 AND id = ?4 AND run = ?5;
