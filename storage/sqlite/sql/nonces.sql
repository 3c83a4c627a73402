-- Reads the nonces with which a worker last claimed something.
SELECT nonces FROM workers WHERE ns = ?1 AND id = ?2;
