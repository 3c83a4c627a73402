-- Writes back the head of a run that stays where it is: no column of an index is touched.
UPDATE runs SET
    lease_end_ms = ?2, seq = ?3, hash = ?4, snapshot_seq = ?5, tail_bytes = ?6,
    lost_in_row = ?7, losses = ?8, cancel = ?9, updated_ms = ?10, requests = ?11,
    inbox_count = ?12, open_count = ?13
WHERE key = ?1;
