-- Asks whether an answer that waits is one to an open question.
SELECT EXISTS (
    SELECT 1 FROM inbox JOIN interrupts ON interrupts.run = inbox.run
    WHERE inbox.run = ?1
        AND (inbox.key = 'i' || interrupts.id OR inbox.key = 'g' || interrupts.gate
            OR inbox.key GLOB 'v' || interrupts.id || '|*')
);
