-- Counts the open questions.
SELECT count(*) FROM interrupts WHERE ns = ?1;
