-- Asks whether a run of a session has not ended.
SELECT EXISTS (
    SELECT 1 FROM runs WHERE ns = ?1 AND session = ?2 AND finished_ms IS NULL
);
