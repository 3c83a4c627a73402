//! The attempts of a run: one for each claim that wrote something, told from the journal.
//!
//! A claim that was handed back before it wrote leaves no trace and is no attempt.
//! A worker that is refused as no longer the owner cannot write that either: its attempt ends as
//! what took the run from it, which is a loss.

use holdpoint_graph::{Event, Life, RunStatus, WorkerId};
use holdpoint_storage::{Record, RunHead};
use serde::{Serialize, Serializer};

use crate::Timestamp;

/// One worker's hold on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The epoch of its lease.
    pub epoch: u64,
    /// The worker.
    pub worker: WorkerId,
    /// When it claimed the run.
    pub started_at: Timestamp,
    /// When it ended; none while it goes on.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// The run ended.
    Finished,
    /// The run parked.
    Parked,
    /// The run waits for a time.
    Rescheduled,
    /// The run was handed back.
    Released,
    /// The worker was lost; how that was seen.
    Lost(String),
    /// It goes on.
    Running,
}

impl std::fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Finished => "finished",
            Self::Parked => "parked",
            Self::Rescheduled => "rescheduled",
            Self::Released => "released",
            Self::Lost(evidence) => return write!(f, "lost({evidence})"),
            Self::Running => "running",
        })
    }
}

impl Serialize for AttemptEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The attempts, oldest first.
pub(crate) fn attempts(head: &RunHead, records: &[Record]) -> Vec<Attempt> {
    let mut found = Attempts::default();
    for record in records {
        found.add(record);
    }
    for loss in &head.losses {
        let claimed_at = Timestamp(loss.claimed_at_ms);
        let attempt = found.of(loss.epoch, &loss.worker, claimed_at);
        attempt.ended_at = Some(Timestamp(loss.lost_at_ms));
        attempt.end = AttemptEnd::Lost(loss.evidence.clone());
    }
    let owner = match &head.life {
        Life::Running { lease } => {
            // A claim that wrote nothing yet: its epoch is its time in µs, or a little more.
            let epoch = lease.pair.epoch;
            let at_ms = i64::try_from(epoch / 1_000).unwrap_or(i64::MAX);
            found.of(epoch, &lease.worker, Timestamp(at_ms.min(head.updated_at_ms)));
            Some(epoch)
        }
        Life::Scheduled { .. }
        | Life::Queued
        | Life::Parked { .. }
        | Life::Completed
        | Life::Failed { .. }
        | Life::Cancelled => None,
    };
    found.close_all_but(owner, head);
    let mut attempts: Vec<Attempt> =
        found.attempts.into_iter().map(|(attempt, _)| attempt).collect();
    attempts.sort_by_key(|attempt| attempt.epoch);
    attempts
}

/// Attempts with the time of their last record.
#[derive(Default)]
struct Attempts {
    attempts: Vec<(Attempt, i64)>,
}

impl Attempts {
    fn add(&mut self, record: &Record) {
        if let Event::Claimed { worker, epoch, at_ms } = &record.event {
            self.of(*epoch, worker, Timestamp(*at_ms));
        }
        if let Event::WorkerLost { worker, epoch, claimed_at_ms, lost_at_ms, evidence } =
            &record.event
        {
            let attempt = self.of(*epoch, worker, Timestamp(*claimed_at_ms));
            attempt.ended_at = Some(Timestamp(*lost_at_ms));
            attempt.end = AttemptEnd::Lost(evidence.clone());
        }
        let mine = self.attempts.iter_mut().find(|(mine, _)| mine.epoch == record.epoch);
        let Some((attempt, last_ms)) = mine else { return };
        *last_ms = record.at_ms;
        let end = match &record.event {
            Event::RunParked { .. } => AttemptEnd::Parked,
            Event::RunRescheduled { .. } => AttemptEnd::Rescheduled,
            Event::RunCompleted | Event::RunFailed { .. } | Event::RunCancelled { .. } => {
                AttemptEnd::Finished
            }
            Event::WorkerLost { epoch, .. } if *epoch == record.epoch => return,
            // An answer that came while the run was about to park keeps it with its owner.
            Event::RunStarted { .. }
            | Event::Claimed { .. }
            | Event::WorkerLost { .. }
            | Event::NodeStarted { .. }
            | Event::StepRecorded { .. }
            | Event::NodeCompleted { .. }
            | Event::NodeRouted { .. }
            | Event::NodeFailed { .. }
            | Event::NodeSlept { .. }
            | Event::BranchJoined { .. }
            | Event::InterruptOpened { .. }
            | Event::InterruptAnswered { .. }
            | Event::VoteCast { .. }
            | Event::InterruptReminded { .. }
            | Event::TimeUsed { .. }
            | Event::StateEdited { .. }
            | Event::Migrated { .. }
            | Event::Redriven { .. } => AttemptEnd::Running,
        };
        let is_over = end != AttemptEnd::Running;
        attempt.end = end;
        attempt.ended_at = is_over.then_some(Timestamp(record.at_ms));
    }

    /// The attempt of an epoch, a new one when it is the first that is heard of it.
    fn of(&mut self, epoch: u64, worker: &WorkerId, started_at: Timestamp) -> &mut Attempt {
        let known = self.attempts.iter().position(|(attempt, _)| attempt.epoch == epoch);
        let at = known.unwrap_or_else(|| {
            let worker = worker.clone();
            let end = AttemptEnd::Running;
            let attempt = Attempt { epoch, worker, started_at, ended_at: None, end };
            self.attempts.push((attempt, started_at.0));
            self.attempts.len() - 1
        });
        &mut self.attempts.get_mut(at).expect("it was found or added just now").0
    }

    /// What still runs and has no lease was handed back, or its run was ended by somebody else.
    /// A parked attempt whose run its owner still has goes on.
    fn close_all_but(&mut self, owner: Option<u64>, head: &RunHead) {
        for (attempt, last_ms) in &mut self.attempts {
            if owner == Some(attempt.epoch) {
                attempt.end = AttemptEnd::Running;
                attempt.ended_at = None;
            } else if attempt.end == AttemptEnd::Running {
                let is_newest = attempt.epoch == head.epoch;
                attempt.end = match head.status() {
                    RunStatus::Completed | RunStatus::Failed if is_newest => AttemptEnd::Finished,
                    RunStatus::Completed
                    | RunStatus::Failed
                    | RunStatus::Scheduled
                    | RunStatus::Queued
                    | RunStatus::Running
                    | RunStatus::Parked
                    | RunStatus::Cancelled => AttemptEnd::Released,
                };
                attempt.ended_at = Some(Timestamp(*last_ms));
            }
        }
    }
}
