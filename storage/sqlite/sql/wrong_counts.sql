-- Compares the counts of each queue and state with the runs.
SELECT queue, status, sum(counted), sum(found) FROM (
    SELECT queue, status, n AS counted, 0 AS found FROM counts WHERE ns = ?1
    UNION ALL
    SELECT lanes.queue, runs.status, 0, 1 FROM runs
    JOIN lanes ON lanes.lane = runs.lane WHERE runs.ns = ?1
)
GROUP BY queue, status HAVING sum(counted) <> sum(found);
