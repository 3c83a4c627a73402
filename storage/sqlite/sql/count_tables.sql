-- Counts the tables of the file.
SELECT count(*) FROM sqlite_schema WHERE type = 'table';
