-- Counts the questions and answers of a run again.
UPDATE runs SET
    open_count = (SELECT count(*) FROM interrupts WHERE run = runs.key),
    inbox_count = (SELECT count(*) FROM inbox WHERE run = runs.key)
WHERE key = ?1;
