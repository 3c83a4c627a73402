//! The journal's events: what happened to a run, each written once.
//!
//! Progress is the fold of these; everything that a later owner must know is in one of them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Answer, Effect, Fingerprint, GraphId, Interrupt, InterruptId, Patch, Progress, RunId, State,
    WorkerId,
};

/// The reserved target that ends a run.
pub const END: &str = "__end__";
/// The reserved source of the entry's edge.
pub const START: &str = "__start__";

/// A task of a run: one coming of the run to a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskRef {
    /// The node.
    pub node: String,
    /// How often the run has come to the node, from 1.
    pub visit: u32,
    /// The index of the branch at each level of fork, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branch: Vec<u32>,
}

/// Where a branch goes on, as data: the answer of edges, routes and gotos.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// To one node, or to [`END`].
    To(String),
    /// To several at once.
    Fork(Fork),
    /// The route failed; the run fails, and a redrive asks the route again.
    Unresolved(String),
}

/// A fork: its branches and the node where they meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The node where the branches meet, or [`END`].
    pub join: String,
    /// The branches in order.
    pub branches: Vec<BranchStart>,
}

/// How a branch begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchStart {
    /// At a node; `input` is put over the branch's copy of the state.
    Node {
        /// The node.
        node: String,
        /// What a `Send` brought along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Map<String, Value>>,
    },
    /// As a fork of its own, whose branches meet before the outer ones do.
    Fork(Fork),
    /// The target is the join itself: nothing to do.
    Join,
}

/// A failed attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The code; `node_error` when the node named none.
    pub code: String,
    /// The message, cut to a limit.
    pub message: String,
}

/// Why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// A node failed for good.
    NodeError,
    /// Workers were lost again and again without progress.
    CrashLoop,
    /// The time to start or end by has passed.
    Expired,
    /// The graph that a worker resolved cannot go on with the run.
    IncompatibleGraph,
    /// Something stored cannot be read.
    Undecodable,
    /// The run used up its steps.
    StepLimit,
    /// Two branches replaced one key with different values.
    WriteConflict,
}

impl ReasonCode {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeError => "node_error",
            Self::CrashLoop => "crash_loop",
            Self::Expired => "expired",
            Self::IncompatibleGraph => "incompatible_graph",
            Self::Undecodable => "undecodable",
            Self::StepLimit => "step_limit",
            Self::WriteConflict => "write_conflict",
        }
    }

    /// The reason of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::NodeError,
            Self::CrashLoop,
            Self::Expired,
            Self::IncompatibleGraph,
            Self::Undecodable,
            Self::StepLimit,
            Self::WriteConflict,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == word)
    }
}

/// Why a run failed, with the words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The code.
    pub code: ReasonCode,
    /// What happened, with the values.
    pub message: String,
    /// The node it happened at.
    pub node: Option<String>,
}

/// Where a forked or replayed run comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The run it was taken from.
    pub run: RunId,
    /// The number of the event after which it was taken.
    pub seq: u64,
    /// Whether nothing was edited.
    pub is_replay: bool,
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// At the graph's entry.
    Entry {
        /// The state, the input applied.
        state: State,
        /// The entry node.
        entry: String,
    },
    /// At a checkpoint of another run.
    Checkpoint {
        /// The other run.
        origin: Origin,
        /// The other run's progress there.
        progress: Box<Progress>,
        /// What was edited.
        patches: Vec<Patch>,
    },
}

/// What a decision does to the task that waited for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task gets the answer and may run.
    Answered,
    /// The task does not run; the run goes on at this node.
    Rerouted(String),
    /// The uncertain task runs again.
    Retry,
    /// The uncertain task counts as done with these patches, and goes on there.
    Completed {
        /// What it wrote.
        patches: Vec<Patch>,
        /// Where the run goes on.
        next: Routing,
    },
    /// The uncertain step of the task counts as done with this value.
    StepDone {
        /// The step's key.
        key: String,
        /// Its value.
        value: Value,
    },
    /// The task failed for good.
    Failed(Failure),
    /// The whole run may go on.
    Resumed,
    /// The whole run is cancelled.
    Cancelled,
}

/// One event of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted {
        /// The graph.
        graph: GraphId,
        /// The structure that the run is pinned to.
        fingerprint: Fingerprint,
        /// The most distinct tasks of its life.
        max_steps: u64,
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
        interrupt: Interrupt,
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
    /// A person changed the state of a parked run.
    StateEdited {
        /// The change.
        patches: Vec<Patch>,
        /// Who.
        by: String,
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
            Self::BranchJoined { .. } => "branch_joined",
            Self::InterruptOpened { .. } => "interrupt_opened",
            Self::InterruptAnswered { .. } => "interrupt_answered",
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
            | Self::BranchJoined { .. }
            | Self::InterruptOpened { .. }
            | Self::InterruptAnswered { .. }
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
            | Self::NodeStarted { .. } => false,
        }
    }
}
