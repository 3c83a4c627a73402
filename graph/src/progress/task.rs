//! Tasks: one coming of a run to a node, and what is recorded of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Answer, Failure, InterruptId, TaskRef};

/// One coming of the run to a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub(super) node: String,
    pub(super) visit: u32,
    pub(super) phase: TaskPhase,
    pub(super) failures: u32,
    pub(super) error: Option<Failure>,
    pub(super) retry_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sleeps_until_ms: Option<i64>,
    pub(super) answer: Option<Answer>,
    pub(super) calls: Vec<Call>,
    pub(super) begun: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskPhase {
    #[default]
    Waiting,
    /// The node is done, its route is not.
    Unrouted(String),
    /// The node failed for good.
    Failed,
}

/// What a node did through its context and is recorded: a step or an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A step that ended.
    Step {
        /// Its key.
        key: String,
        /// Its value.
        value: Value,
    },
    /// A question.
    Ask {
        /// Its key.
        key: String,
        /// Its opening.
        interrupt: InterruptId,
        /// Its answer.
        answer: Option<Answer>,
    },
}

/// Where a task stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It may run, or runs.
    Ready,
    /// It waits for an answer.
    Asked,
    /// It waits to run again after an error.
    Retrying,
    /// It sleeps, and starts again when its time has come.
    Sleeping,
    /// Its node is done and its route failed.
    Unrouted,
    /// It failed for good.
    Failed,
}

impl Task {
    /// The node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The attempt that is or would be next, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.failures + 1
    }

    /// The gate's answer.
    #[must_use]
    pub const fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// What the node has recorded, in order.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The unsafe things that began and have no result: steps by key, the node itself as none.
    #[must_use]
    pub fn begun(&self) -> &[Option<String>] {
        &self.begun
    }

    /// The last error.
    #[must_use]
    pub const fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// When the task runs again after an error.
    #[must_use]
    pub const fn retry_at_ms(&self) -> Option<i64> {
        self.retry_at_ms
    }

    /// When the task starts again by itself: after an error, or after a sleep.
    #[must_use]
    pub fn starts_at_ms(&self) -> Option<i64> {
        self.sleeps_until_ms.max(self.retry_at_ms)
    }
}

/// A task with its place.
#[derive(Debug, Clone)]
pub struct TaskView<'a> {
    /// Its place and name.
    pub task: TaskRef,
    /// The task.
    pub inner: &'a Task,
    /// Where it stands.
    pub status: TaskStatus,
}

impl Task {
    /// The task's name at a place.
    pub(crate) fn name(&self, branch: &[u32]) -> TaskRef {
        TaskRef { node: self.node.clone(), visit: self.visit, branch: branch.to_vec() }
    }

    pub(super) fn status(&self, is_asked: bool) -> TaskStatus {
        match self.phase {
            TaskPhase::Failed => TaskStatus::Failed,
            TaskPhase::Unrouted(_) => TaskStatus::Unrouted,
            TaskPhase::Waiting if is_asked => TaskStatus::Asked,
            TaskPhase::Waiting if self.sleeps_until_ms.is_some() => TaskStatus::Sleeping,
            TaskPhase::Waiting if self.retry_at_ms.is_some() => TaskStatus::Retrying,
            TaskPhase::Waiting => TaskStatus::Ready,
        }
    }

    pub(crate) fn unrouted(&self) -> Option<&str> {
        match &self.phase {
            TaskPhase::Unrouted(why) => Some(why),
            TaskPhase::Waiting | TaskPhase::Failed => None,
        }
    }

    /// Whether the node is still to end.
    pub(crate) fn is_waiting(&self) -> bool {
        self.phase == TaskPhase::Waiting
    }

    /// The key of an ask that has no answer.
    pub(crate) fn unanswered(&self) -> Option<&str> {
        self.calls.iter().find_map(|call| match call {
            Call::Ask { key, answer: None, .. } => Some(key.as_str()),
            Call::Step { .. } | Call::Ask { answer: Some(_), .. } => None,
        })
    }

    /// The coming of the run to `node`.
    pub(super) fn at(node: &str, visit: u32) -> Self {
        Self { node: node.to_owned(), visit, ..Self::default() }
    }

    pub(super) fn answered(&mut self, id: &InterruptId, given: &Answer) {
        for call in &mut self.calls {
            if let Call::Ask { interrupt, answer, .. } = call
                && interrupt == id
            {
                *answer = Some(given.clone());
                return;
            }
        }
        self.answer = Some(given.clone());
    }

    pub(super) fn step_done(&mut self, key: &str, value: &Value) {
        self.begun.retain(|step| step.as_deref() != Some(key));
        self.calls.push(Call::Step { key: key.to_owned(), value: value.clone() });
    }

    pub(super) fn fail(&mut self, error: &Failure, retry_at_ms: Option<i64>) {
        self.failures += 1;
        self.error = Some(error.clone());
        self.retry_at_ms = retry_at_ms;
        self.sleeps_until_ms = None;
        self.begun.clear();
        if retry_at_ms.is_none() {
            self.phase = TaskPhase::Failed;
        }
    }

    /// All attempts again; what is recorded or answered stays, open questions are asked anew.
    pub(super) fn redrive(&mut self) {
        let is_kept = |call: &Call| match call {
            Call::Step { .. } | Call::Ask { answer: Some(_), .. } => true,
            Call::Ask { answer: None, .. } => false,
        };
        self.calls.retain(is_kept);
        self.failures = 0;
        self.retry_at_ms = None;
        self.sleeps_until_ms = None;
        if self.phase == TaskPhase::Failed {
            self.phase = TaskPhase::Waiting;
        }
    }

    /// The node sleeps. An error before its sleep is over with.
    pub(super) fn sleep(&mut self, until_ms: i64) {
        self.suspend();
        self.sleeps_until_ms = Some(until_ms);
    }

    /// The node itself is suspended: its owner ended it on purpose, so that its next start is no
    /// repetition. Steps that began stay begun.
    pub(super) fn suspend(&mut self) {
        self.sleeps_until_ms = None;
        self.begun.retain(Option::is_some);
    }
}
