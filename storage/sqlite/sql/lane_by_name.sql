-- Finds the number of a lane.
SELECT lane FROM lanes
WHERE ns = ?1 AND queue = ?2 AND graph = ?3 AND fingerprint = ?4;
