-- Deletes an idempotency key.
DELETE FROM idempotency WHERE ns = ?1 AND id = ?2;
