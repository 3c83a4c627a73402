-- Finds the run of an idempotency key.
SELECT run, payload_hash, ended FROM idempotency WHERE ns = ?1 AND id = ?2;
