-- Stores the head of a new run.
INSERT INTO runs (
    ns, id, lane, session, turn, status, ready, priority, due_ms, close_ms, seq, hash,
    snapshot_seq, tail_bytes, epoch, claims, lost_in_row, lost_in_life, payload_hash,
    created_ms, updated_ms, expires_ms, deadline_ms, tags, requests, idempotency,
    inbox_count, open_count
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, '',
    0, 0, 0, 0, 0, 0, ?11,
    ?12, ?12, ?13, ?14, ?15, ?16, ?17,
    0, 0
);
