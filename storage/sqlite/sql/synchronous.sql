-- Asks when the disk is waited for.
PRAGMA synchronous;
