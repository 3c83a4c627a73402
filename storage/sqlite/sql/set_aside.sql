-- Takes a damaged run out of its namespace and of every index; what is stored of it stays. The
-- number of no namespace is negative, and the lane still tells which one it was.
UPDATE runs SET ns = -key, ready = 0 WHERE key = ?1 AND ns >= 0;
