-- Asks which schema the file has.
PRAGMA user_version;
