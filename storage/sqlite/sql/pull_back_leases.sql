-- Shortens the leases that end later than the longest may: the clock was set back.
UPDATE runs SET lease_end_ms = ?2
WHERE ns = ?1 AND worker IS NOT NULL AND lease_end_ms > ?2;
