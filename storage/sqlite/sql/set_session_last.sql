-- Notes the run whose state the next one of the session starts from.
UPDATE sessions SET last = ?3 WHERE ns = ?1 AND id = ?2;
