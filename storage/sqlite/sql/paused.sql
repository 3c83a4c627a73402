-- Reads the queues that are paused.
SELECT queue FROM paused WHERE ns = ?1 ORDER BY queue;
