-- Asks whether a lane has a claimable run.
SELECT EXISTS (SELECT 1 FROM runs WHERE lane = ?1 AND ready = 1);
