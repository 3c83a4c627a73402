-- Shows an open question anew.
UPDATE interrupts SET gate = ?3, args_hash = ?4, votes = ?5, body = ?6, deadline_ms = ?7, lists = ?8
WHERE run = ?1 AND id = ?2;
