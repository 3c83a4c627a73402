-- Asks for a number that moves with the commits of other connections.
PRAGMA data_version;
