-- Gives a lane its number.
INSERT INTO lanes (ns, queue, graph, fingerprint) VALUES (?1, ?2, ?3, ?4);
