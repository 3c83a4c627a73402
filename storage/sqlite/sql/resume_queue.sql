-- Resumes a queue.
DELETE FROM paused WHERE ns = ?1 AND queue = ?2;
