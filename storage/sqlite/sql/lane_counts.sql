-- Counts the claimable runs of each lane of a namespace, and finds the first of each.
SELECT runs.lane, count(*), min(runs.key) FROM lanes
JOIN runs ON runs.lane = lanes.lane AND runs.ready = 1
WHERE lanes.ns = ?1 GROUP BY runs.lane ORDER BY runs.lane;
