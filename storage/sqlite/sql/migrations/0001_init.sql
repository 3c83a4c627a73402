-- Schema 1. Never edited: what changes comes as the next migration.
-- Times are ms since 1970, epochs µs. A run's `key` is its place in the order of enqueueing.

-- A namespace, with what its ticks remember.
CREATE TABLE namespaces (
    ns INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    last_tick_ms INTEGER,
    hold_until_ms INTEGER NOT NULL DEFAULT 0,
    lease_ms_max INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The lanes that ever had a run; never deleted, so that their numbers can be remembered.
CREATE TABLE lanes (
    lane INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL,
    queue TEXT NOT NULL,
    graph TEXT NOT NULL,
    fingerprint TEXT NOT NULL, -- empty: any
    UNIQUE (ns, queue, graph, fingerprint)
) STRICT;

-- The heads of the runs. The order of the columns is the order in which they are decoded.
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL,
    id TEXT NOT NULL,
    lane INTEGER NOT NULL,
    session TEXT,
    turn INTEGER, -- the place in the session's order, while it has one
    -- Not IN: SQLite would make a table of the list for each row that it checks.
    status TEXT NOT NULL CHECK (
        status = 'queued' OR status = 'running' OR status = 'completed' OR status = 'scheduled'
        OR status = 'parked' OR status = 'failed' OR status = 'cancelled'),
    ready INTEGER NOT NULL CHECK (ready = 0 OR status = 'queued'), -- 1: may be claimed
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    due_ms INTEGER CHECK (due_ms IS NULL OR status = 'scheduled' OR status = 'parked'),
    close_ms INTEGER, -- when it must end, while it has no owner
    worker TEXT CHECK ((worker IS NOT NULL) = (status = 'running')),
    nonce TEXT CHECK ((nonce IS NOT NULL) = (status = 'running')),
    lease_end_ms INTEGER CHECK ((lease_end_ms IS NOT NULL) = (status = 'running')),
    claimed_ms INTEGER,
    reason TEXT CHECK ((reason IS NOT NULL) = (status = 'failed')),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    snapshot_seq INTEGER NOT NULL,
    tail_bytes INTEGER NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    claims INTEGER NOT NULL,
    lost_in_row INTEGER NOT NULL,
    lost_in_life INTEGER NOT NULL,
    losses TEXT,
    cancel TEXT,
    payload_hash TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    started_ms INTEGER,
    finished_ms INTEGER CHECK ((finished_ms IS NOT NULL)
        = (status = 'completed' OR status = 'failed' OR status = 'cancelled')),
    expires_ms INTEGER,
    deadline_ms INTEGER,
    tags TEXT,
    requests BLOB NOT NULL, -- digests of the last request ids
    idempotency TEXT,
    inbox_count INTEGER NOT NULL CHECK (inbox_count >= 0),
    open_count INTEGER NOT NULL CHECK (open_count >= 0)
) STRICT;

CREATE UNIQUE INDEX runs_id ON runs (ns, id);
CREATE UNIQUE INDEX runs_created ON runs (ns, created_ms, id);
-- Partial: a run is in the indexes of its state only, and a commit that goes on touches none.
CREATE INDEX runs_ready ON runs (lane, priority DESC) WHERE ready = 1;
CREATE INDEX runs_due ON runs (ns, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX runs_close ON runs (ns, close_ms) WHERE close_ms IS NOT NULL;
CREATE INDEX runs_held ON runs (ns, worker, nonce) WHERE worker IS NOT NULL;
CREATE INDEX runs_ended ON runs (ns, status, finished_ms) WHERE finished_ms IS NOT NULL;
CREATE INDEX runs_session ON runs (ns, session, turn) WHERE session IS NOT NULL;

-- The envelopes.
CREATE TABLE payloads (run INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- The journals. Rows are appended in the order of writing, so that a group of commits writes
-- few pages; the index finds a run's.
CREATE TABLE events (
    row INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_run ON events (run, n);

-- The newest snapshots.
CREATE TABLE snapshots (run INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

-- The open questions.
CREATE TABLE interrupts (
    row INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL,
    run INTEGER NOT NULL,
    id TEXT NOT NULL,
    gate TEXT,
    args_hash TEXT NOT NULL,
    votes TEXT NOT NULL,
    opened_ms INTEGER NOT NULL,
    deadline_ms INTEGER,
    lists TEXT NOT NULL CHECK (json_valid(lists)), -- the names of those in which it stands
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX interrupts_run ON interrupts (run, id);

-- The lists of open questions: for each list (`all` or `some`, `g:GRAPH`, `a:PERSON`, `m:GROUP`,
-- `t:TAG`) behind `ou:` those without a deadline by opening, behind `oo:` those with one by
-- opening, behind `od:` the same by deadline.
CREATE TABLE listed (
    ns INTEGER NOT NULL,
    list TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    id TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (ns, list, at_ms, id, run)
) STRICT, WITHOUT ROWID;

-- What `listed` must hold. The questions of a run that was set aside are on no list.
CREATE VIEW placed AS
SELECT interrupts.row AS row, interrupts.ns AS ns,
    iif(interrupts.deadline_ms IS NULL, 'ou:', 'oo:') || json_each.value AS list,
    interrupts.opened_ms AS at_ms, interrupts.id AS id, interrupts.run AS run
FROM interrupts, json_each(iif(json_valid(interrupts.lists), interrupts.lists, '[]'))
WHERE interrupts.ns >= 0
UNION ALL
SELECT interrupts.row, interrupts.ns, 'od:' || json_each.value,
    interrupts.deadline_ms, interrupts.id, interrupts.run
FROM interrupts, json_each(iif(json_valid(interrupts.lists), interrupts.lists, '[]'))
WHERE interrupts.ns >= 0 AND interrupts.deadline_ms IS NOT NULL;

-- However a question comes, changes or goes, its lists follow.
CREATE TRIGGER interrupts_come AFTER INSERT ON interrupts BEGIN
    INSERT OR IGNORE INTO listed
    SELECT ns, list, at_ms, id, run FROM placed WHERE row = NEW.row;
END;
CREATE TRIGGER interrupts_go BEFORE DELETE ON interrupts BEGIN
    DELETE FROM listed WHERE (ns, list, at_ms, id, run)
        IN (SELECT ns, list, at_ms, id, run FROM placed WHERE row = OLD.row);
END;
CREATE TRIGGER interrupts_leave BEFORE UPDATE OF ns, lists, deadline_ms ON interrupts
WHEN (OLD.ns, OLD.lists, OLD.deadline_ms) IS NOT (NEW.ns, NEW.lists, NEW.deadline_ms) BEGIN
    DELETE FROM listed WHERE (ns, list, at_ms, id, run)
        IN (SELECT ns, list, at_ms, id, run FROM placed WHERE row = OLD.row);
END;
CREATE TRIGGER interrupts_enter AFTER UPDATE OF ns, lists, deadline_ms ON interrupts
WHEN (OLD.ns, OLD.lists, OLD.deadline_ms) IS NOT (NEW.ns, NEW.lists, NEW.deadline_ms) BEGIN
    INSERT OR IGNORE INTO listed
    SELECT ns, list, at_ms, id, run FROM placed WHERE row = NEW.row;
END;

-- The answers that wait.
CREATE TABLE inbox (
    row INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX inbox_run ON inbox (run, key);

-- The sessions, from their first run until they are deleted.
CREATE TABLE sessions (
    ns INTEGER NOT NULL,
    id TEXT NOT NULL,
    graph TEXT NOT NULL,
    last INTEGER, -- the run whose state the next one starts from
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;

-- The idempotency keys. `ended`: the last state of the run, once the run itself is deleted.
CREATE TABLE idempotency (
    ns INTEGER NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    ended TEXT,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_ended ON idempotency (ns, created_ms) WHERE ended IS NOT NULL;

-- How many runs of a queue are in a state: a cache, which the doctor compares with the runs.
CREATE TABLE counts (
    ns INTEGER NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (ns, queue, status)
) STRICT, WITHOUT ROWID;

-- The queues that are paused.
CREATE TABLE paused (
    ns INTEGER NOT NULL,
    queue TEXT NOT NULL,
    PRIMARY KEY (ns, queue)
) STRICT, WITHOUT ROWID;

-- The workers: what they say of themselves (nothing before their first sign of life), and
-- digests of the nonces with which they last claimed something.
CREATE TABLE workers (
    ns INTEGER NOT NULL,
    id TEXT NOT NULL,
    record TEXT,
    seen_ms INTEGER NOT NULL,
    nonces BLOB NOT NULL,
    PRIMARY KEY (ns, id)
) STRICT, WITHOUT ROWID;

-- The graphs that were published.
CREATE TABLE graphs (
    ns INTEGER NOT NULL,
    graph TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    drawing TEXT NOT NULL,
    published_ms INTEGER NOT NULL,
    PRIMARY KEY (ns, graph, fingerprint)
) STRICT, WITHOUT ROWID;

-- The newest partial results of each run.
CREATE TABLE partials (
    run INTEGER NOT NULL,
    n INTEGER NOT NULL,
    after INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, n)
) STRICT;
