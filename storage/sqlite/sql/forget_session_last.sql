-- Lets the next run of a session start from nothing.
UPDATE sessions SET last = NULL WHERE ns = ?1 AND id = ?2;
