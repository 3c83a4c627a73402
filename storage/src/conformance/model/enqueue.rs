//! How runs enter the model.

use std::collections::VecDeque;

use holdpoint_graph::{Life, RunStatus, SessionId};

use super::{Model, ModelRun, ModelSession};
use crate::{CancelWish, ChainHash, Enqueued, IfBusy, NewRun, RunHead};

impl Model {
    /// Stores runs; unless `partial`, all of them or none.
    pub fn enqueue(&mut self, items: &[NewRun], partial: bool, now_ms: i64) -> Vec<Enqueued> {
        let mut trial = self.clone();
        let said: Vec<_> = items.iter().map(|item| trial.enqueue_one(item, now_ms)).collect();
        if partial || !said.iter().any(Enqueued::is_refused) {
            *self = trial;
        }
        said
    }

    fn enqueue_one(&mut self, item: &NewRun, now_ms: i64) -> Enqueued {
        if let Some(answer) = self.known(item) {
            return answer;
        }
        if let Some(session) = item.session.as_ref().and_then(|id| self.sessions.get(id)) {
            if session.graph != item.graph {
                return Enqueued::SessionGraph { graph: session.graph.clone() };
            }
            if let (Some(active), IfBusy::Reject) = (session.order.front(), item.if_busy) {
                let question = self.questions(active).first().map(|open| open.interrupt.clone());
                return Enqueued::SessionBusy { run: active.clone(), question };
            }
        }
        let depth = self.heads().filter(|head| head.queue == item.queue && waits(head)).count();
        if depth as u64 >= item.queue_depth_max {
            return Enqueued::QueueFull { depth: depth as u64 };
        }
        self.store(item, now_ms)
    }

    /// The answer when the run or its key is known.
    fn known(&self, item: &NewRun) -> Option<Enqueued> {
        let run = item.run.clone();
        let taken = self.runs.get(&run);
        if let Some(known) = taken.filter(|known| known.knows(&item.request)) {
            let status = known.head.status();
            return Some(Enqueued::Repeated { run, status });
        }
        // A key says more than an id: it knows whether the work is the same.
        self.keyed(item).or(taken.map(|_| Enqueued::RunExists))
    }

    /// The answer when the key is known.
    fn keyed(&self, item: &NewRun) -> Option<Enqueued> {
        let (run, payload_hash) = self.keys.get(item.key.as_ref()?)?.clone();
        if payload_hash != item.payload_hash {
            return Some(Enqueued::KeyConflict { run });
        }
        let status = self.head(&run)?.status();
        Some(Enqueued::Existing { run, status })
    }

    fn store(&mut self, item: &NewRun, now_ms: i64) -> Enqueued {
        if let Some(session) = &item.session {
            let graph = item.graph.clone();
            self.sessions.entry(session.clone()).or_insert_with(|| ModelSession {
                graph,
                order: VecDeque::new(),
                last: None,
            });
            match item.if_busy {
                IfBusy::Enqueue | IfBusy::Reject => {}
                IfBusy::Interrupt => self.wish(session, CancelWish::Interrupted),
                IfBusy::Rollback => self.wish(session, CancelWish::RolledBack),
            }
        }
        if let Some(key) = &item.key {
            self.keys.insert(key.clone(), (item.run.clone(), item.payload_hash.clone()));
        }
        self.places += 1;
        let head = head(item, now_ms);
        let status = head.status();
        let mut run = ModelRun {
            head,
            payload: item.payload.clone(),
            place: self.places,
            requests: VecDeque::new(),
            open: Vec::new(),
            inbox: Default::default(),
            snapshot: None,
            journal: Vec::new(),
        };
        run.remember(&item.request);
        self.put(run);
        Enqueued::Created { run: item.run.clone(), status }
    }

    /// Sets the wish of a newer run on the session's active one.
    fn wish(&mut self, session: &SessionId, wish: CancelWish) {
        let active = self.sessions.get(session).and_then(|session| session.order.front());
        let Some(run) = active.cloned().and_then(|id| self.runs.get_mut(&id)) else { return };
        run.head.cancel = match run.head.cancel {
            None => Some(wish),
            Some(CancelWish::Interrupted) if wish == CancelWish::RolledBack => Some(wish),
            Some(CancelWish::Asked | CancelWish::Interrupted | CancelWish::RolledBack) => {
                run.head.cancel
            }
        };
    }
}

/// Whether the run counts for its queue's depth.
fn waits(head: &RunHead) -> bool {
    [RunStatus::Scheduled, RunStatus::Queued].contains(&head.status())
}

fn head(item: &NewRun, now_ms: i64) -> RunHead {
    let until_ms = item.start.at_ms(now_ms);
    let life = if until_ms > now_ms { Life::Scheduled { until_ms } } else { Life::Queued };
    RunHead {
        run: item.run.clone(),
        graph: item.graph.clone(),
        queue: item.queue.clone(),
        session: item.session.clone(),
        fingerprint: item.fingerprint.clone(),
        life,
        priority: item.priority,
        tags: item.tags.clone(),
        seq: 0,
        hash: ChainHash::default(),
        snapshot_seq: 0,
        tail_bytes: 0,
        epoch: 0,
        claims: 0,
        lost_in_row: 0,
        lost_in_life: 0,
        losses: Vec::new(),
        cancel: None,
        payload_hash: item.payload_hash.clone(),
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        started_at_ms: None,
        finished_at_ms: None,
        expires_at_ms: item.expires.map(|when| when.at_ms(now_ms)),
        deadline_ms: item.deadline.map(|when| when.at_ms(now_ms)),
    }
}
