-- Takes the questions of a damaged run off the lists.
UPDATE interrupts SET ns = -run WHERE run = ?1 AND ns >= 0;
