-- Deletes the idempotency keys that outlived their run for long enough.
DELETE FROM idempotency WHERE ns = ?1 AND id IN (
    SELECT id FROM idempotency
    WHERE ns = ?1 AND ended IS NOT NULL AND created_ms <= ?2 ORDER BY created_ms LIMIT ?3
);
