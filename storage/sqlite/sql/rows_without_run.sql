-- Finds parts of runs that are not there any more.
SELECT part, run FROM (
    SELECT 'event' AS part, run FROM events
    UNION ALL SELECT 'payload', run FROM payloads
    UNION ALL SELECT 'snapshot', run FROM snapshots
    UNION ALL SELECT 'question', run FROM interrupts
    UNION ALL SELECT 'answer', run FROM inbox
    UNION ALL SELECT 'partial result', run FROM partials
)
WHERE run NOT IN (SELECT key FROM runs) GROUP BY part, run LIMIT ?1;
