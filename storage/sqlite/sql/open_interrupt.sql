-- Opens a question.
INSERT INTO interrupts (ns, run, id, gate, args_hash, opened_ms, votes, body, deadline_ms, lists)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);
