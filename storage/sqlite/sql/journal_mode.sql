-- Asks how the file is journaled.
PRAGMA journal_mode;
