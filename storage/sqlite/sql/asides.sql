-- Reads the runs that were set aside; whose lane is lost shows up in every namespace.
SELECT runs.* FROM runs LEFT JOIN lanes ON lanes.lane = runs.lane
WHERE runs.ns < 0 AND coalesce(lanes.ns, ?1) = ?1 ORDER BY runs.key LIMIT ?2;
