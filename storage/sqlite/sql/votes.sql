-- Reads the votes on a question that wait, with their requests.
SELECT key, request FROM inbox WHERE run = ?1 AND key GLOB 'v' || ?2 || '|*' ORDER BY row;
