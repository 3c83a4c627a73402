-- Remembers a tick.
UPDATE namespaces SET last_tick_ms = ?2, hold_until_ms = ?3 WHERE ns = ?1;
