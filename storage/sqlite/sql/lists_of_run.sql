-- Reads in which lists the questions of a run stand.
SELECT id, lists FROM interrupts WHERE run = ?1 ORDER BY id;
