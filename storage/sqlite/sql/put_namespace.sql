-- Enters a namespace, unless it is known.
INSERT INTO namespaces (name) VALUES (?1) ON CONFLICT (name) DO NOTHING;
