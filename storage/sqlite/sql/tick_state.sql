-- Reads what the last ticks left.
SELECT last_tick_ms, hold_until_ms, lease_ms_max FROM namespaces WHERE ns = ?1;
