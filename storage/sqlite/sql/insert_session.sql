-- Begins a session, unless it exists.
INSERT INTO sessions (ns, id, graph) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
