-- Opens a question, unless it is open.
INSERT INTO interrupts (ns, run, id, gate, args_hash, opened_ms, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (run, id) DO NOTHING;
