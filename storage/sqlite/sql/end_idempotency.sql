-- Notes the last state of a run whose idempotency key outlives it.
UPDATE idempotency SET ended = ?3 WHERE ns = ?1 AND id = ?2;
