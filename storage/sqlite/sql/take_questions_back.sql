-- Puts the questions of a run that is taken back on the lists again.
UPDATE interrupts SET ns = ?2 WHERE run = ?1 AND ns < 0;
