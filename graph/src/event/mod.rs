//! The journal's events: what happened to a run, each written once.
//!
//! Progress is the fold of these; everything that a later owner must know is in one of them.

mod outcome;
mod place;
mod reason;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    outcome::{Beginning, Origin, Outcome},
    place::{BranchStart, END, Fork, Routing, START, TaskRef},
    reason::{Failure, Reason, ReasonCode},
};
use crate::{
    Answer, Budget, Effect, Fingerprint, GraphId, Interrupt, InterruptId, Patch, WorkerId,
};

/// One event of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The graph.
        graph: GraphId,
        /// The structure that the run is pinned to.
        fingerprint: Fingerprint,
        /// The most distinct tasks of its life.
        max_steps: u64,
        /// What it may use up before a person is asked.
        #[serde(default, skip_serializing_if = "Budget::is_none")]
        budget: Budget,
        /// Where it begins.
        begin: Beginning,
    },
    /// A worker took the run.
    Claimed {
        /// The worker.
        worker: WorkerId,
        /// The lease's epoch.
        epoch: u64,
        /// When, in ms since 1970.
        at_ms: i64,
    },
    /// A worker that held the run is gone.
    WorkerLost {
        /// The worker.
        worker: WorkerId,
        /// Its epoch.
        epoch: u64,
        /// When it had claimed the run.
        claimed_at_ms: i64,
        /// When it was found lost.
        lost_at_ms: i64,
        /// How that was seen.
        evidence: String,
    },
    /// An unsafe node, or an unsafe step of a node, is about to begin.
    NodeStarted {
        /// The task.
        task: TaskRef,
        /// The step, when it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// The effect class.
        effect: Effect,
    },
    /// A memoised step ended.
    StepRecorded {
        /// The task.
        task: TaskRef,
        /// The step's key.
        key: String,
        /// Its value.
        value: Value,
    },
    /// A node ended well.
    NodeCompleted {
        /// The task.
        task: TaskRef,
        /// What it wrote.
        patches: Vec<Patch>,
        /// Where the run goes on.
        next: Routing,
        /// Whether it counts as a step.
        #[serde(default = "yes", skip_serializing_if = "is_yes")]
        counted: bool,
    },
    /// A route that had failed was asked again.
    NodeRouted {
        /// The task whose route it is.
        task: TaskRef,
        /// Where the run goes on.
        next: Routing,
    },
    /// An attempt of a node failed.
    NodeFailed {
        /// The task.
        task: TaskRef,
        /// The attempt, from 1.
        attempt: u32,
        /// Why.
        error: Failure,
        /// When it runs again; none when it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at_ms: Option<i64>,
    },
    /// A node sleeps: its attempt was ended on purpose, and it starts again then.
    NodeSlept {
        /// The task.
        task: TaskRef,
        /// When it starts again.
        until_ms: i64,
    },
    /// The branches of a fork met.
    BranchJoined {
        /// Where the fork stands.
        branch: Vec<u32>,
        /// What the branches wrote together.
        patches: Vec<Patch>,
    },
    /// A question opened.
    InterruptOpened {
        /// The question.
        interrupt: Box<Interrupt>,
    },
    /// A question was answered.
    InterruptAnswered {
        /// The question.
        interrupt: InterruptId,
        /// The answer.
        answer: Answer,
        /// The request that brought it.
        request: String,
        /// What it does.
        outcome: Outcome,
    },
    /// One of several people that a question needs gave an answer that does not decide yet.
    VoteCast {
        /// The question.
        interrupt: InterruptId,
        /// The vote.
        vote: Answer,
        /// The request that brought it.
        request: String,
    },
    /// Nobody has decided yet, and those who are asked are reminded.
    InterruptReminded {
        /// The question.
        interrupt: InterruptId,
        /// Who is asked too from now on.
        also: Vec<String>,
    },
    /// The owner of a run with a budget of time had it for so long since its last such event, or
    /// since its claim.
    TimeUsed {
        /// How long, in ms.
        ms: u64,
    },
    /// A person changed the state of a parked run.
    StateEdited {
        /// The change.
        patches: Vec<Patch>,
        /// Who.
        by: String,
        /// The open questions that are about something else now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<Interrupt>,
    },
    /// The run parked.
    RunParked {
        /// When it wakes by itself.
        wake_at_ms: Option<i64>,
    },
    /// The run waits for a time.
    RunRescheduled {
        /// Until when.
        until_ms: i64,
    },
    /// The run was pinned to another structure in which its position exists too.
    Migrated {
        /// The structure it was pinned to.
        from: Fingerprint,
        /// The structure it is pinned to now.
        to: Fingerprint,
        /// Who asked for it.
        by: String,
    },
    /// The run ended well.
    RunCompleted,
    /// The run failed.
    RunFailed {
        /// Why.
        reason: Reason,
    },
    /// The run was cancelled.
    RunCancelled {
        /// Who or what asked for it.
        by: String,
    },
    /// A failed run goes on.
    Redriven {
        /// Who asked for it.
        by: String,
        /// The new step limit.
        max_steps: Option<u64>,
    },
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_yes(flag: &bool) -> bool {
    *flag
}

impl Event {
    /// The stable name of the type, as in `runs events`.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::Claimed { .. } => "claimed",
            Self::WorkerLost { .. } => "worker_lost",
            Self::NodeStarted { .. } => "node_started",
            Self::StepRecorded { .. } => "step_recorded",
            Self::NodeCompleted { .. } => "node_completed",
            Self::NodeRouted { .. } => "node_routed",
            Self::NodeFailed { .. } => "node_failed",
            Self::NodeSlept { .. } => "node_slept",
            Self::BranchJoined { .. } => "branch_joined",
            Self::InterruptOpened { .. } => "interrupt_opened",
            Self::InterruptAnswered { .. } => "interrupt_answered",
            Self::VoteCast { .. } => "vote_cast",
            Self::InterruptReminded { .. } => "interrupt_reminded",
            Self::TimeUsed { .. } => "time_used",
            Self::StateEdited { .. } => "state_edited",
            Self::Migrated { .. } => "migrated",
            Self::RunParked { .. } => "run_parked",
            Self::RunRescheduled { .. } => "run_rescheduled",
            Self::RunCompleted => "run_completed",
            Self::RunFailed { .. } => "run_failed",
            Self::RunCancelled { .. } => "run_cancelled",
            Self::Redriven { .. } => "redriven",
        }
    }

    /// Whether the event shows that the run moves: it clears the counter of lost workers.
    #[must_use]
    pub const fn is_progress(&self) -> bool {
        match self {
            Self::StepRecorded { .. }
            | Self::NodeCompleted { .. }
            | Self::NodeRouted { .. }
            | Self::NodeFailed { .. }
            | Self::NodeSlept { .. }
            | Self::BranchJoined { .. }
            | Self::InterruptOpened { .. }
            | Self::InterruptAnswered { .. }
            | Self::VoteCast { .. }
            | Self::InterruptReminded { .. }
            | Self::StateEdited { .. }
            | Self::Migrated { .. }
            | Self::RunParked { .. }
            | Self::RunRescheduled { .. }
            | Self::RunCompleted
            | Self::RunFailed { .. }
            | Self::RunCancelled { .. }
            | Self::Redriven { .. } => true,
            Self::RunStarted { .. }
            | Self::Claimed { .. }
            | Self::WorkerLost { .. }
            | Self::TimeUsed { .. }
            | Self::NodeStarted { .. } => false,
        }
    }
}
