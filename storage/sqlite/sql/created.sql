-- Reads when a run was enqueued.
SELECT created_ms FROM runs WHERE key = ?1;
