//! A transaction of the writer: the time it happens at, and how a changed run is written back.
//!
//! Operations load a [`RunRow`], move it with the functions of `Life`, and give it to
//! [`Tx::save`], which alone knows of indexes, session orders, counts and wake-ups.

use std::collections::{HashMap, HashSet};

use holdpoint_graph::{Life, QueueId, RequestId, RunId, RunStatus, SessionId};
use holdpoint_storage::{CancelWish, Lane};
use rusqlite::params;

use crate::{
    aside,
    db::{Db, texts},
    fault::Done,
    place::{Place, close_ms},
    row::{self, RunRow},
};

/// What one transaction does. Shared by all calls of a group.
#[derive(Debug)]
pub(crate) struct Tx<'d> {
    pub(crate) db: &'d Db,
    /// The store's time in µs since 1970, read once.
    pub(crate) now_us: i64,
    /// The same in ms.
    pub(crate) now_ms: i64,
    /// The longest lease that is known to be stored; a cache.
    pub(crate) lease_ms_max: &'d mut i64,
    changes: Changes,
    depths: HashMap<QueueId, i64>,
}

/// What the transaction did besides its writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    counts: HashMap<QueueId, [i64; RunStatus::ALL.len()]>,
    /// The lanes to which a claimable run came.
    pub(crate) lanes: HashSet<i64>,
    /// The runs that changed.
    pub(crate) runs: HashSet<RunId>,
    /// Whether a queue was resumed: any lane may have got runs.
    pub(crate) has_resumed: bool,
}

impl<'d> Tx<'d> {
    pub(crate) fn new(db: &'d Db, now_us: i64, lease_ms_max: &'d mut i64) -> Self {
        let (changes, depths) = (Changes::default(), HashMap::new());
        Self { db, now_us, now_ms: now_us / 1_000, lease_ms_max, changes, depths }
    }

    /// Stores a new run, which is scheduled or queued.
    pub(crate) fn insert(&mut self, run: &mut RunRow) -> Done<()> {
        let place = self.settle(run)?;
        let head = &run.head;
        self.db.execute(
            include_str!("../sql/insert_run.sql"),
            params![
                self.db.ns,
                head.run.as_str(),
                run.lane,
                head.session.as_ref().map(AsRef::as_ref),
                run.turn,
                place.status.as_str(),
                place.is_ready,
                head.priority,
                place.due_ms,
                place.close_ms,
                head.payload_hash,
                head.created_at_ms,
                head.expires_at_ms,
                head.deadline_ms,
                row::to_json(&head.tags),
                run.requests.as_bytes(),
                run.idempotency.as_ref().map(AsRef::as_ref),
            ],
        )?;
        run.key = self.db.conn.last_insert_rowid();
        run.place = place;
        self.count(&head.queue, place.status, 1);
        self.note(run, place.is_ready);
        Ok(())
    }

    /// Writes a changed run back, with all that follows from the change.
    pub(crate) fn save(&mut self, run: &mut RunRow) -> Done<()> {
        let place = self.settle(run)?;
        let old = run.place;
        let has_ended = place.status.is_terminal() && !old.status.is_terminal();
        if has_ended {
            self.close(run)?;
        }
        if place == old {
            self.keep_run(run)?;
        } else {
            self.move_run(run, &place)?;
        }
        run.place = place;
        if place.status != old.status {
            self.count(&run.head.queue, old.status, -1);
            self.count(&run.head.queue, place.status, 1);
        }
        let came = place.is_ready && (!old.is_ready || place.lane != old.lane);
        self.note(run, came);
        if let (Some(_), None, Some(session)) = (old.turn, place.turn, &run.head.session) {
            self.next_in_session(session)?;
        }
        Ok(())
    }

    /// Gives the run its turn and derives its place.
    fn settle(&self, run: &mut RunRow) -> Done<Place> {
        let status = run.head.status();
        if status.is_terminal() {
            run.turn = None;
        }
        let mut is_ready = matches!(status, RunStatus::Queued);
        let may_join = is_ready || matches!(status, RunStatus::Running);
        if let (true, None, Some(session)) = (may_join, run.turn, &run.head.session) {
            run.turn = Some(self.last_turn(session.as_str())? + 1);
        }
        if let (true, Some(turn), Some(session)) = (is_ready, run.turn, &run.head.session) {
            let first = self.db.first_turn(session.as_str())?;
            is_ready = first.is_none_or(|(first, _)| first >= turn);
        }
        Ok(Place {
            lane: run.lane,
            turn: run.turn,
            status,
            is_ready,
            due_ms: run.head.due_at_ms(),
            close_ms: close_ms(&run.head),
            epoch: run.head.epoch,
        })
    }

    fn last_turn(&self, session: &str) -> Done<i64> {
        let sql = include_str!("../sql/last_turn.sql");
        let last: Option<Option<i64>> =
            self.db.one(sql, params![self.db.ns, session], |row| Ok(row.get(0)?))?;
        Ok(last.flatten().unwrap_or(0))
    }

    /// What ends with a run: its questions, its inbox, and its being in the session.
    fn close(&self, run: &mut RunRow) -> Done<()> {
        if run.open_count > 0 {
            self.db.execute(include_str!("../sql/delete_interrupts.sql"), [run.key])?;
            run.open_count = 0;
        }
        if run.inbox_count > 0 {
            self.db.execute(include_str!("../sql/delete_inbox.sql"), [run.key])?;
            run.inbox_count = 0;
        }
        run.head.finished_at_ms = Some(self.now_ms);
        if let (Some(session), true) = (&run.head.session, counts_in_session(run)) {
            let sql = include_str!("../sql/set_session_last.sql");
            self.db.execute(sql, params![self.db.ns, session.as_str(), run.key])?;
        }
        Ok(())
    }

    fn move_run(&self, run: &RunRow, place: &Place) -> Done<()> {
        let head = &run.head;
        let lease = match &head.life {
            Life::Running { lease } => Some(lease),
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Parked { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => None,
        };
        self.db.execute(
            include_str!("../sql/move_run.sql"),
            params![
                run.key,
                run.lane,
                run.turn,
                place.status.as_str(),
                place.is_ready,
                place.due_ms,
                place.close_ms,
                lease.map(|lease| lease.worker.as_str()),
                lease.map(|lease| lease.pair.nonce.as_str()),
                lease.map(|lease| lease.deadline_ms),
                run.claimed_ms,
                head.reason().map(|reason| reason.as_str()),
                head.seq as i64,
                head.hash.0,
                head.snapshot_seq as i64,
                head.tail_bytes as i64,
                head.epoch as i64,
                head.claims as i64,
                head.lost_in_row,
                head.lost_in_life,
                row::to_json(&head.losses),
                head.cancel.map(CancelWish::as_str),
                head.updated_at_ms,
                head.started_at_ms,
                head.finished_at_ms,
                run.requests.as_bytes(),
                run.inbox_count,
                run.open_count,
            ],
        )?;
        Ok(())
    }

    /// The write of a commit that goes on: a row, and no index.
    fn keep_run(&self, run: &RunRow) -> Done<()> {
        let head = &run.head;
        self.db.execute(
            include_str!("../sql/keep_run.sql"),
            params![
                run.key,
                run.lease_end_ms(),
                head.seq as i64,
                head.hash.0,
                head.snapshot_seq as i64,
                head.tail_bytes as i64,
                head.lost_in_row,
                row::to_json(&head.losses),
                head.cancel.map(CancelWish::as_str),
                head.updated_at_ms,
                run.requests.as_bytes(),
                run.inbox_count,
                run.open_count,
            ],
        )?;
        Ok(())
    }

    /// Lets the next run of a session be claimed, now that one has left its order.
    pub(crate) fn next_in_session(&mut self, session: &SessionId) -> Done<()> {
        let Some((_, key)) = self.db.first_turn(session.as_str())? else { return Ok(()) };
        // One that cannot be read is set aside, which lets the one behind it come.
        let Some(next) = aside::run(self, key)? else { return Ok(()) };
        if matches!(next.place.status, RunStatus::Queued) && !next.place.is_ready {
            self.db.execute(include_str!("../sql/make_ready.sql"), [key])?;
            self.changes.lanes.insert(next.lane);
        }
        Ok(())
    }

    /// The number of a lane, which it gets with its first run.
    pub(crate) fn lane(&self, lane: &Lane) -> Done<i64> {
        if let Some(number) = self.db.lane_number(lane)? {
            return Ok(number);
        }
        let (queue, graph, fingerprint) = texts(lane);
        let sql = include_str!("../sql/insert_lane.sql");
        self.db.execute(sql, params![self.db.ns, queue, graph, fingerprint])?;
        let number = self.db.conn.last_insert_rowid();
        self.db.lane_cache.borrow_mut().insert(number, lane.clone());
        Ok(number)
    }

    /// How many runs wait in a queue.
    pub(crate) fn depth(&mut self, queue: &QueueId) -> Done<i64> {
        let stored = match self.depths.get(queue) {
            Some(depth) => *depth,
            None => {
                let sql = include_str!("../sql/queue_depth.sql");
                let depth = self.db.number(sql, params![self.db.ns, queue.as_str()])?;
                self.depths.insert(queue.clone(), depth);
                depth
            }
        };
        let waiting = |status| match status {
            RunStatus::Scheduled | RunStatus::Queued => true,
            RunStatus::Running
            | RunStatus::Parked
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled => false,
        };
        let new = self.changes.counts.get(queue).map_or(0, |deltas| {
            let all = RunStatus::ALL.into_iter().zip(deltas);
            all.filter(|(status, _)| waiting(*status)).map(|(_, delta)| delta).sum()
        });
        Ok(stored + new)
    }

    /// Counts runs of a queue in or out of a state; written with the end of the transaction.
    pub(crate) fn count(&mut self, queue: &QueueId, status: RunStatus, by: i64) {
        if !self.changes.counts.contains_key(queue) {
            self.changes.counts.insert(queue.clone(), Default::default());
        }
        let deltas = self.changes.counts.get_mut(queue);
        if let Some(delta) = deltas.and_then(|deltas| deltas.get_mut(status as usize)) {
            *delta += by;
        }
    }

    /// Remembers whom to tell of a change.
    fn note(&mut self, run: &RunRow, came_to_lane: bool) {
        if came_to_lane {
            self.changes.lanes.insert(run.lane);
        }
        self.touch(&run.head.run);
    }

    /// Remembers that a run changed.
    pub(crate) fn touch(&mut self, run: &RunId) {
        self.changes.runs.insert(run.clone());
    }

    /// Remembers that a queue was resumed.
    pub(crate) const fn resumed(&mut self) {
        self.changes.has_resumed = true;
    }

    /// What was done so far, to come back to with [`Tx::go_back_to`].
    pub(crate) fn mark(&self) -> Changes {
        self.changes.clone()
    }

    /// Forgets what was done since the mark, after its writes were rolled back.
    pub(crate) fn go_back_to(&mut self, mark: Changes) {
        self.changes = mark;
        self.db.lane_cache.borrow_mut().clear();
    }

    /// Writes the counts; the last step before COMMIT.
    pub(crate) fn finish(mut self) -> Done<Changes> {
        self.write_counts()?;
        Ok(self.changes)
    }

    /// Writes what was counted so far.
    pub(crate) fn write_counts(&mut self) -> Done<()> {
        for (queue, deltas) in self.changes.counts.drain() {
            for (status, delta) in RunStatus::ALL.into_iter().zip(deltas) {
                if delta != 0 {
                    let params = params![self.db.ns, queue.as_str(), status.as_str(), delta];
                    self.db.execute(include_str!("../sql/count_runs.sql"), params)?;
                }
            }
        }
        self.depths.clear();
        Ok(())
    }

    /// Writes a run with all its columns to the place that its head names, wherever it stands.
    pub(crate) fn replace(&mut self, run: &mut RunRow) -> Done<()> {
        let place = self.settle(run)?;
        self.move_run(run, &place)?;
        self.note(run, place.is_ready);
        run.place = place;
        Ok(())
    }
}

/// Whether the next run of the session starts from this one: it began (which pins it), and was
/// not rolled back.
fn counts_in_session(run: &RunRow) -> bool {
    let is_rolled_back =
        run.is_rolled_back || matches!(run.head.cancel, Some(CancelWish::RolledBack));
    match run.head.life {
        Life::Completed => true,
        Life::Cancelled if is_rolled_back => false,
        Life::Cancelled
        | Life::Failed { .. }
        | Life::Scheduled { .. }
        | Life::Queued
        | Life::Running { .. }
        | Life::Parked { .. } => run.head.fingerprint.is_some(),
    }
}

/// Remembers a request with its run.
pub(crate) fn remember(run: &mut RunRow, request: &RequestId) {
    run.requests.add(request.as_str());
}
