//! How a run begins, and what a decision does.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Failure, Reason, Routing};
use crate::{Patch, Progress, Resource, RunId, State};

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
    /// The state is changed first; then the task gets the answer and may run.
    Edited(Vec<Patch>),
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
    /// The whole run may go on with a larger budget.
    Raised {
        /// Of what.
        resource: Resource,
        /// By how much, in steps or ms.
        by: u64,
    },
    /// The whole run fails.
    Stopped(Reason),
}
