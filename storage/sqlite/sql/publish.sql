-- Stores a graph; it keeps the time of its first publication.
INSERT INTO graphs (ns, graph, fingerprint, drawing, published_ms)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (ns, graph, fingerprint) DO UPDATE SET drawing = excluded.drawing;
