-- Corrects the count of the runs of a queue in a state.
INSERT INTO counts (ns, queue, status, n) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (ns, queue, status) DO UPDATE SET n = excluded.n;
