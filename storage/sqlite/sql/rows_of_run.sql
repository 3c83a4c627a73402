-- Reads all rows that belong to the key of a run, as texts that a backup can keep.
SELECT 'events', json_object('run', run, 'n', n, 'body', hex(body)) FROM events WHERE run = ?1
UNION ALL
SELECT 'payloads', json_object('run', run, 'body', hex(body)) FROM payloads WHERE run = ?1
UNION ALL
SELECT 'snapshots', json_object('run', run, 'body', hex(body)) FROM snapshots WHERE run = ?1
UNION ALL
SELECT 'interrupts', json_object('ns', ns, 'run', run, 'id', id, 'gate', gate,
    'args_hash', args_hash, 'votes', votes, 'opened_ms', opened_ms, 'deadline_ms', deadline_ms,
    'lists', lists, 'body', hex(body))
FROM interrupts WHERE run = ?1
UNION ALL
SELECT 'inbox', json_object('run', run, 'key', key, 'request', request, 'record', hex(record))
FROM inbox WHERE run = ?1
UNION ALL
SELECT 'partials', json_object('run', run, 'n', n, 'after', after, 'body', hex(body))
FROM partials WHERE run = ?1;
