-- Asks SQLite to check the file.
PRAGMA quick_check;
