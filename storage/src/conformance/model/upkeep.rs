//! Upkeep in the model: timers, lost workers, and the claims that end runs without an owner.

use holdpoint_graph::{Life, RunId, RunStatus, WorkerId};

use super::{Model, owner::Taker};
use crate::{Loss, RunHead, TickRequest, Ticked};

impl Model {
    /// Fires at most `max` due timers, the earliest first; how many fired.
    pub fn fire(&mut self, now_ms: i64, max: usize) -> usize {
        let is_due = |head: &&RunHead| head.due_at_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let mut due: Vec<_> =
            self.heads().filter(is_due).map(|head| (head.due_at_ms(), head.run.clone())).collect();
        due.sort();
        due.truncate(max);
        for (_, id) in &due {
            let Some(mut run) = self.runs.get(id).cloned() else { continue };
            let Ok(life) = run.head.life.clone().fire(now_ms) else { continue };
            run.head.life = life;
            self.put(run);
        }
        due.len()
    }

    /// Hands back all runs of a lost worker.
    pub fn lost(
        &mut self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
        now_ms: i64,
    ) -> Vec<RunId> {
        let held = self.heads().filter(|head| match &head.life {
            Life::Running { lease } => lease.worker == *worker,
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Parked { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => false,
        });
        let held: Vec<RunId> = held.map(|head| head.run.clone()).collect();
        for id in &held {
            self.lose(id, evidence, loss_delays_ms, now_ms);
        }
        held
    }

    /// Reaps, fires, and claims what must end. There is no hold here.
    pub fn tick(&mut self, request: &TickRequest, now_ms: i64) -> Ticked {
        let ended = self.heads().filter(|head| match &head.life {
            Life::Running { lease } => lease.deadline_ms <= now_ms - request.grace_ms,
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Parked { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => false,
        });
        let reaped: Vec<RunId> = ended.map(|head| head.run.clone()).take(request.max).collect();
        for id in &reaped {
            self.lose(id, "lease expired", &request.loss_delays_ms, now_ms);
        }
        let fired = self.fire(now_ms, request.max);
        let taker =
            Taker { worker: &request.worker, nonce: &request.nonce, lease_ms: request.lease_ms };
        let unwanted = self.heads().filter(|head| must_end(head, now_ms));
        let unwanted: Vec<_> = unwanted.map(|head| head.run.clone()).take(request.max).collect();
        let mut closing = Vec::new();
        for id in unwanted {
            let Some(mut run) = self.runs.get(&id).cloned() else { continue };
            let life = run.head.life.clone();
            let Ok(queued) = life.clone().start_now().or_else(|_| life.signal()) else { continue };
            run.head.life = queued;
            self.put(run);
            closing.extend(self.take_one(&id, &taker, now_ms));
        }
        Ticked { now_ms, held_until_ms: None, reaped, fired, closing }
    }

    fn lose(&mut self, id: &RunId, evidence: &str, loss_delays_ms: &[i64], now_ms: i64) {
        let Some(mut run) = self.runs.get(id).cloned() else { return };
        let Life::Running { lease } = &run.head.life else { return };
        run.head.losses.push(Loss {
            worker: lease.worker.clone(),
            epoch: lease.pair.epoch,
            claimed_at_ms: now_ms,
            lost_at_ms: now_ms,
            evidence: evidence.to_owned(),
        });
        let last = loss_delays_ms.len().saturating_sub(1);
        let nth = (run.head.lost_in_row as usize).saturating_sub(1).min(last);
        let delay_ms = loss_delays_ms.get(nth).copied().unwrap_or(0);
        let Ok(life) = run.head.life.clone().lose(now_ms + delay_ms, now_ms) else { return };
        run.head.life = life;
        run.head.updated_at_ms = now_ms;
        self.put(run);
    }
}

/// Whether a run without an owner has to be ended by somebody.
fn must_end(head: &RunHead, now_ms: i64) -> bool {
    let waits = match head.status() {
        RunStatus::Scheduled | RunStatus::Queued | RunStatus::Parked => true,
        RunStatus::Running | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
            false
        }
    };
    let has_come = |time_ms: Option<i64>| time_ms.is_some_and(|time_ms| time_ms <= now_ms);
    let is_expired = head.started_at_ms.is_none() && has_come(head.expires_at_ms);
    waits && (is_expired || has_come(head.deadline_ms) || head.cancel.is_some())
}
