-- Finds the first claimable runs of a lane.
SELECT priority, key FROM runs
WHERE lane = ?1 AND ready = 1 ORDER BY priority DESC, key LIMIT ?2;
