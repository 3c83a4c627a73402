-- Writes back the head of a run that moved.
UPDATE runs SET
    lane = ?2, turn = ?3, status = ?4, ready = ?5, due_ms = ?6, close_ms = ?7,
    worker = ?8, nonce = ?9, lease_end_ms = ?10, claimed_ms = ?11, reason = ?12, seq = ?13,
    hash = ?14, snapshot_seq = ?15, tail_bytes = ?16, epoch = ?17, claims = ?18,
    lost_in_row = ?19, lost_in_life = ?20, losses = ?21, cancel = ?22, updated_ms = ?23,
    started_ms = ?24, finished_ms = ?25, requests = ?26, inbox_count = ?27, open_count = ?28
WHERE key = ?1;
