-- Finds keys that parts of runs name, and no run has.
SELECT DISTINCT run FROM (
    SELECT run FROM events
    UNION ALL SELECT run FROM payloads
    UNION ALL SELECT run FROM snapshots
    UNION ALL SELECT run FROM interrupts
    UNION ALL SELECT run FROM inbox
    UNION ALL SELECT run FROM partials
)
WHERE run NOT IN (SELECT key FROM runs) ORDER BY run LIMIT ?1;
