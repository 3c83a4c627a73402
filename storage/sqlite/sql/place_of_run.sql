-- Reads of a run only what tells where it was counted and who stands behind it.
SELECT lanes.queue, runs.status, runs.session, runs.turn FROM runs
LEFT JOIN lanes ON lanes.lane = runs.lane WHERE runs.key = ?1 AND runs.ns = ?2;
