-- Asks whose file it is.
PRAGMA application_id;
