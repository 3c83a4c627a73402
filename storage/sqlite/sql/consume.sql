-- Takes an answer out of an inbox.
DELETE FROM inbox WHERE run = ?1 AND key = ?2;
