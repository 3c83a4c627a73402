-- Pauses a queue.
INSERT INTO paused (ns, queue) VALUES (?1, ?2) ON CONFLICT DO NOTHING;
