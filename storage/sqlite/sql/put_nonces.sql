-- Remembers the nonces with which a worker last claimed something.
INSERT INTO workers (ns, id, seen_ms, nonces) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (ns, id) DO UPDATE SET seen_ms = excluded.seen_ms, nonces = excluded.nonces;
