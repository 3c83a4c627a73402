-- Stores an idempotency key.
INSERT INTO idempotency (ns, id, run, payload_hash, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5);
