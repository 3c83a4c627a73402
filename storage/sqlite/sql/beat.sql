-- Stores what a worker says of itself.
INSERT INTO workers (ns, id, record, seen_ms, nonces) VALUES (?1, ?2, ?3, ?4, x'')
ON CONFLICT (ns, id) DO UPDATE SET record = excluded.record, seen_ms = excluded.seen_ms;
