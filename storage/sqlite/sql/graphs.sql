-- Reads the graphs that were published.
SELECT graph, fingerprint, drawing, published_ms FROM graphs
WHERE ns = ?1 ORDER BY graph, published_ms, fingerprint;
