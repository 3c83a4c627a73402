-- Finds a run among those that were set aside.
SELECT key FROM runs LEFT JOIN lanes ON lanes.lane = runs.lane
WHERE runs.ns < 0 AND runs.id = ?2 AND coalesce(lanes.ns, ?1) = ?1;
