//! What workers and owners do in the model: claim, renew, release, commit.

use std::cmp::Reverse;

use holdpoint_graph::{End, LeaseTerm, Life, Pair, RunId, WorkerId};

use super::{Model, ModelRun};
use crate::{
    CancelWish, ClaimRequest, ClaimedRun, Claims, CommitReply, CommitRequest, Disposition,
    Durability, Lease, OpenedInterrupt, Renewal,
};

/// Who takes a run, and for how long.
pub(super) struct Taker<'a> {
    pub(super) worker: &'a WorkerId,
    pub(super) nonce: &'a str,
    pub(super) lease_ms: i64,
}

impl Model {
    /// Takes runs from lanes; a repeat answers what is left of the first answer.
    pub fn claim(&mut self, request: &ClaimRequest, now_ms: i64) -> Claims {
        self.fire(now_ms, 100);
        let is_repeat = self.nonces.get(&request.worker) == Some(&request.nonce);
        let runs = if is_repeat { self.held(request, now_ms) } else { self.take(request, now_ms) };
        let next_due_ms = match runs.is_empty() {
            true => self.heads().filter_map(crate::RunHead::due_at_ms).min(),
            false => None,
        };
        Claims { now_ms, runs, next_due_ms }
    }

    fn held(&mut self, request: &ClaimRequest, now_ms: i64) -> Vec<ClaimedRun> {
        let mut held = Vec::new();
        for id in self.runs.keys().cloned().collect::<Vec<_>>() {
            let Some(run) = self.runs.get_mut(&id) else { continue };
            let Life::Running { lease } = &mut run.head.life else { continue };
            if lease.worker == request.worker && lease.pair.nonce == request.nonce {
                lease.deadline_ms = now_ms + request.lease_ms;
                held.extend(self.claimed(&id));
            }
        }
        held
    }

    fn take(&mut self, request: &ClaimRequest, now_ms: i64) -> Vec<ClaimedRun> {
        let taker =
            Taker { worker: &request.worker, nonce: &request.nonce, lease_ms: request.lease_ms };
        let picked = self.pick(request);
        let taken: Vec<_> =
            picked.iter().filter_map(|id| self.take_one(id, &taker, now_ms)).collect();
        if !taken.is_empty() {
            self.nonces.insert(request.worker.clone(), request.nonce.clone());
        }
        taken
    }

    /// The runs that the claim takes, in its order. One that lost its worker goes alone.
    fn pick(&self, request: &ClaimRequest) -> Vec<RunId> {
        let is_served = |run: &&ModelRun| request.lanes.contains(&run.head.lane());
        let mut waiting: Vec<_> =
            self.runs.values().filter(|run| self.is_claimable(run)).filter(is_served).collect();
        waiting.sort_by_key(|run| {
            let priority = if request.oldest_first { 0 } else { run.head.priority };
            (Reverse(priority), run.place)
        });
        let (mut picked, mut bytes) = (Vec::new(), 0);
        for run in waiting {
            if picked.len() >= request.max || bytes > request.bytes_max {
                break;
            }
            let is_suspect = run.head.lost_in_row > 0;
            if is_suspect && !picked.is_empty() {
                continue;
            }
            bytes += run.payload.len() + run.snapshot.as_ref().map_or(0, Vec::len);
            bytes += run.head.tail_bytes as usize;
            picked.push(run.head.run.clone());
            if is_suspect {
                break;
            }
        }
        picked
    }

    /// Makes the taker the owner of a queued run.
    pub(super) fn take_one(
        &mut self,
        id: &RunId,
        taker: &Taker<'_>,
        now_ms: i64,
    ) -> Option<ClaimedRun> {
        let mut run = self.runs.get(id)?.clone();
        let now_us = u64::try_from(now_ms).unwrap_or(0) * 1_000;
        let epoch = now_us.max(run.head.epoch + 1);
        let pair = Pair { epoch, nonce: taker.nonce.to_owned() };
        let worker = taker.worker.clone();
        let lease = LeaseTerm { pair, worker, deadline_ms: now_ms + taker.lease_ms };
        run.head.life = run.head.life.claim(lease).ok()?;
        run.head.epoch = epoch;
        run.head.claims += 1;
        run.head.lost_in_row += 1;
        run.head.lost_in_life += 1;
        run.head.started_at_ms = run.head.started_at_ms.or(Some(now_ms));
        run.head.updated_at_ms = now_ms;
        self.put(run);
        self.claimed(id)
    }

    fn claimed(&self, id: &RunId) -> Option<ClaimedRun> {
        let run = self.runs.get(id)?;
        let Life::Running { lease } = &run.head.life else { return None };
        let session = run.head.session.as_ref().and_then(|session| self.sessions.get(session));
        Some(ClaimedRun {
            head: run.head.clone(),
            lease: Lease {
                run: id.clone(),
                pair: lease.pair.clone(),
                worker: lease.worker.clone(),
            },
            payload: run.payload.clone(),
            damage: None,
            snapshot: run.snapshot.clone(),
            journal: run.journal.iter().skip(run.head.snapshot_seq as usize).cloned().collect(),
            inbox: run.entries(),
            session_last: session.and_then(|session| session.last.clone()),
        })
    }

    /// Keeps a lease.
    pub fn renew(&mut self, lease: &Lease, lease_ms: i64, now_ms: i64) -> Renewal {
        let Some(run) = self.runs.get_mut(&lease.run) else { return Renewal::Fenced };
        let Ok(life) = run.head.life.clone().renew(&lease.pair, now_ms + lease_ms) else {
            return Renewal::Fenced;
        };
        run.head.life = life;
        Renewal::Kept { cancel: run.head.cancel.is_some(), has_inbox: !run.inbox.is_empty() }
    }

    /// Hands a run back; the claim does not count as one that lost its worker.
    pub fn release(&mut self, lease: &Lease, now_ms: i64) -> bool {
        let Some(mut run) = self.runs.get(&lease.run).cloned() else { return false };
        let Ok(life) = run.head.life.release(&lease.pair) else { return false };
        run.head.life = life;
        run.head.lost_in_row = run.head.lost_in_row.saturating_sub(1);
        run.head.lost_in_life = run.head.lost_in_life.saturating_sub(1);
        run.head.updated_at_ms = now_ms;
        self.put(run);
        true
    }

    /// The owner's write. None: there is no such run.
    pub fn commit(&mut self, request: &CommitRequest, now_ms: i64) -> Option<CommitReply> {
        let run = self.runs.get(&request.lease.run)?.clone();
        if run.knows(&request.request) {
            return Some(done(&run, now_ms));
        }
        if run.head.life.clone().renew(&request.lease.pair, 0).is_err() {
            return Some(CommitReply::Fenced);
        }
        if request.from != run.head.seq || request.previous != run.head.hash {
            return Some(CommitReply::Sequence { seq: run.head.seq });
        }
        let cancels = request.disposition == Disposition::Finish { end: End::Cancelled };
        if run.head.cancel.is_some() && !cancels {
            return Some(CommitReply::Cancelled);
        }
        let run = self.dispose(written(run, request, now_ms), request, now_ms);
        Some(done(&run, now_ms))
    }

    /// Moves the run as the commit says. The caller has checked the pair.
    fn dispose(&mut self, mut run: ModelRun, request: &CommitRequest, now_ms: i64) -> ModelRun {
        let (life, pair) = (run.head.life.clone(), &request.lease.pair);
        let has_vote = |question: &OpenedInterrupt| {
            let mut votes = run.votes(&question.interrupt).into_iter();
            votes.any(|(_, by)| by.is_some())
        };
        let is_answered = run.open.iter().any(|q| run.waiting_for(q).is_some() || has_vote(q));
        let goes_on = match request.disposition {
            Disposition::Continue => true,
            Disposition::Park { .. } => is_answered,
            Disposition::Reschedule { .. } | Disposition::Finish { .. } => false,
        };
        let moved = match request.disposition {
            Disposition::Park { wake_at_ms } if !goes_on => {
                let parked = life.park(pair, wake_at_ms);
                parked.map(|parked| parked.clone().fire(now_ms).unwrap_or(parked))
            }
            Disposition::Continue | Disposition::Park { .. } => {
                let end_ms = end_of_lease(&life);
                life.renew(pair, request.lease_end_ms(end_ms, now_ms))
            }
            Disposition::Reschedule { until_ms } => life.reschedule(pair, until_ms, now_ms),
            Disposition::Finish { end } => life.finish(pair, end),
        };
        run.head.life = moved.expect("the pair was checked");
        if !goes_on {
            run.head.lost_in_row = 0;
            run.head.lost_in_life = run.head.lost_in_life.saturating_sub(1);
        }
        let id = run.head.run.clone();
        if run.head.status().is_terminal() {
            let is_undone =
                run.head.life == Life::Cancelled && run.head.cancel == Some(CancelWish::RolledBack);
            self.put_ended(run, !is_undone, now_ms);
        } else {
            self.put(run);
        }
        self.runs.get(&id).expect("it was put there").clone()
    }
}

/// The run with what the commit writes, whatever becomes of it.
fn written(mut run: ModelRun, request: &CommitRequest, now_ms: i64) -> ModelRun {
    run.remember(&request.request);
    run.append(&request.records, &request.hash);
    if !request.records.is_empty() {
        run.head.losses.clear();
    }
    if let Some(snapshot) = &request.snapshot {
        run.snapshot = Some(snapshot.clone());
        run.head.snapshot_seq = run.head.seq;
        run.head.tail_bytes = 0;
    }
    if let Some(pin) = &request.pin {
        run.head.fingerprint = Some(pin.clone());
    }
    run.inbox.retain(|key, _| !request.consumed.contains(key));
    run.show(&request.opened);
    run.open.retain(|question| !request.closed.contains(&question.interrupt));
    if request.is_progress {
        run.head.lost_in_row = 1;
    }
    run.head.updated_at_ms = now_ms;
    run
}

fn end_of_lease(life: &Life) -> i64 {
    if let Life::Running { lease } = life { lease.deadline_ms } else { 0 }
}

fn done(run: &ModelRun, now_ms: i64) -> CommitReply {
    CommitReply::Done {
        now_ms,
        status: run.head.status(),
        inbox: run.entries(),
        durability: Durability::Buffered,
    }
}
