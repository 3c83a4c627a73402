//! Ends that need no graph: expired, cancelled, crash loops, what cannot be read.

use std::{fmt::Display, sync::Arc};

use holdpoint_graph::{Code, End, Event, Progress, Reason, ReasonCode};
use holdpoint_storage::{CancelWish, Chain, Disposition, RunHead, StoreError};

use super::{Claimed, Outcome, QueuedExecutor, UNRESOLVED_WAIT_MS};
use crate::journal::{Journal, Loaded, Opening, Written};

/// How a run ends that has no way to go on.
pub(super) enum Ending {
    Failed(Reason),
    Cancelled(String),
}

impl QueuedExecutor {
    /// Whether the head alone says that the run must end.
    pub(super) fn must_end(&self, head: &RunHead, now_ms: i64) -> Option<Ending> {
        if let Some(wish) = head.cancel {
            return Some(Ending::Cancelled(match wish {
                CancelWish::Asked => "a request".to_owned(),
                CancelWish::Interrupted | CancelWish::RolledBack => {
                    "a newer run of the session".to_owned()
                }
            }));
        }
        let failed = |code, message| Some(Ending::Failed(Reason { code, message, node: None }));
        let has_passed = |at: Option<i64>| at.is_some_and(|at| at <= now_ms);
        if head.seq == 0 && has_passed(head.expires_at_ms) {
            return failed(ReasonCode::Expired, "the run had not started in time".to_owned());
        }
        if has_passed(head.deadline_ms) {
            return failed(ReasonCode::Expired, "the run's deadline has passed".to_owned());
        }
        let lost_in_row = head.lost_in_row.saturating_sub(1);
        let lost_in_life = head.lost_in_life.saturating_sub(1);
        if lost_in_row >= self.config.max_crashes || lost_in_life >= self.config.max_crashes_in_life
        {
            let seen =
                head.losses.iter().map(|loss| format!("{} ({})", loss.worker, loss.evidence));
            let seen: Vec<String> = seen.collect();
            let message = format!(
                "{lost_in_row} workers in a row were lost with the run, {lost_in_life} over its \
                 life: {}",
                seen.join(", ")
            );
            return failed(ReasonCode::CrashLoop, message);
        }
        None
    }

    /// Something stored that this program cannot read. What a newer program wrote is left to one;
    /// what is damaged ends the run, and its bytes stay.
    pub(super) async fn unreadable(
        &self,
        claimed: &Claimed,
        what: &str,
        fault: &StoreError,
    ) -> Outcome {
        if fault.code() == Code::SchemaNewer {
            return self.put_off(claimed, fault).await;
        }
        let message = format!("{what}{fault}");
        self.end_without_graph(claimed, undecodable(message)).await
    }

    /// Not to be executed here: the run is offered again a little later.
    pub(super) async fn put_off(&self, claimed: &Claimed, error: &(dyn Display + Sync)) -> Outcome {
        let Some(pen) = self.pen(claimed) else { return Outcome::GivenUp };
        let run = &claimed.run;
        tracing::warn!(run = %run.head.run, %error, "cannot execute the run");
        put_off_with(pen, claim_events(&run.head, &run.lease)).await
    }

    /// A pen that goes on behind the head, for writes that need no progress.
    fn pen(&self, claimed: &Claimed) -> Option<(Journal, Progress)> {
        let head = &claimed.run.head;
        let chain = Chain::at(&self.namespace, &head.run, head.seq, &head.hash).ok()?;
        let opening = Opening {
            store: Arc::clone(&self.store),
            listeners: self.listeners.clone(),
            config: self.config,
            time: Arc::clone(&claimed.time),
            control: claimed.control.clone(),
            lease: claimed.run.lease.clone(),
        };
        Some(Journal::new(opening, Loaded::behind(chain)))
    }

    pub(super) async fn end_without_graph(&self, claimed: &Claimed, ending: Ending) -> Outcome {
        let Some((mut journal, progress)) = self.pen(claimed) else { return Outcome::GivenUp };
        for event in claim_events(&claimed.run.head, &claimed.run.lease) {
            journal.push(event);
        }
        end_with((journal, progress), ending).await
    }
}

pub(super) fn undecodable(message: String) -> Ending {
    Ending::Failed(Reason { code: ReasonCode::Undecodable, message, node: None })
}

/// Puts a run off and writes nothing to its journal, which would grow for as long as nobody can
/// execute the run, and which this program may not know. `claims` are written if it was cancelled.
pub(super) async fn put_off_with(
    (mut journal, progress): (Journal, Progress),
    claims: Vec<Event>,
) -> Outcome {
    let until_ms = journal.now_ms().saturating_add(UNRESOLVED_WAIT_MS);
    match journal.commit(&progress, Disposition::Reschedule { until_ms }).await {
        Written::Done { .. } => Outcome::Rescheduled { until_ms },
        Written::Cancelled => {
            claims.into_iter().for_each(|event| journal.push(event));
            end_with((journal, progress), Ending::Cancelled("a request".to_owned())).await
        }
        Written::Fenced => Outcome::Fenced,
        Written::GivenUp(_) => Outcome::GivenUp,
    }
}

pub(super) async fn end_with(
    (mut journal, progress): (Journal, Progress),
    ending: Ending,
) -> Outcome {
    let (event, end, outcome) = match ending {
        Ending::Failed(reason) => {
            let code = reason.code;
            (Event::RunFailed { reason }, End::Failed(code), Outcome::Failed(code))
        }
        Ending::Cancelled(by) => (Event::RunCancelled { by }, End::Cancelled, Outcome::Cancelled),
    };
    journal.push(event);
    match journal.commit(&progress, Disposition::Finish { end }).await {
        Written::Done { .. } => outcome,
        Written::Cancelled => {
            journal.take_back_last();
            let end = Ending::Cancelled("a request".to_owned());
            Box::pin(end_with((journal, progress), end)).await
        }
        Written::Fenced => Outcome::Fenced,
        Written::GivenUp(_) => Outcome::GivenUp,
    }
}

/// What the journal does not have yet of who held the run.
pub(super) fn claim_events(head: &RunHead, lease: &holdpoint_storage::Lease) -> Vec<Event> {
    let lost = head.losses.iter().map(|loss| Event::WorkerLost {
        worker: loss.worker.clone(),
        epoch: loss.epoch,
        claimed_at_ms: loss.claimed_at_ms,
        lost_at_ms: loss.lost_at_ms,
        evidence: loss.evidence.clone(),
    });
    let claimed = Event::Claimed {
        worker: lease.worker.clone(),
        epoch: lease.pair.epoch,
        at_ms: head.updated_at_ms,
    };
    lost.chain([claimed]).collect()
}
