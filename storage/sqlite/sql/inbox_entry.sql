-- Reads one answer that waits.
SELECT request, record FROM inbox WHERE run = ?1 AND key = ?2;
