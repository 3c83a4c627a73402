-- Takes a run back that was set aside, where no other has its id.
UPDATE OR IGNORE runs SET ns = ?2 WHERE key = ?1 AND ns < 0;
