-- Makes the run claimable whose turn in its session has come.
UPDATE runs SET ready = 1 WHERE key = ?1;
