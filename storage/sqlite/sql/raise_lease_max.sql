-- Remembers the longest lease that was granted.
UPDATE namespaces SET lease_ms_max = max(lease_ms_max, ?2) WHERE ns = ?1;
