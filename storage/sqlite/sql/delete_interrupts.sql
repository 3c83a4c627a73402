-- Closes all questions of a run.
DELETE FROM interrupts WHERE run = ?1;
