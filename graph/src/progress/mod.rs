//! Progress: the fold of a run's events. State and position, and nothing that needs a graph.
//!
//! The same fold serves the first start, recovery, forks, the command line and the dashboard.
//! It is a tree: a flow is one task, or a fork whose branches are flows again.

mod asked;
mod flow;
mod fold;
mod task;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

pub(crate) use self::flow::{Branch, Flow, ForkState};
use self::flow::{branch_of, visit_tasks};
pub use self::task::{Call, Task, TaskStatus, TaskView};
use crate::{
    Budget, END, Event, Fingerprint, GraphId, Interrupt, InterruptId, Origin, Reason, Resource,
    RunStatus, State, TaskRef, budget::TimeUsed,
};

/// A record that does not follow from those before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({event}) does not follow: {why}")]
pub struct EngineError {
    /// The number of the event.
    pub seq: u64,
    /// Its type.
    pub event: &'static str,
    /// What it names that is not there.
    pub why: String,
}

/// State and position of a run after some number of its events.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    seq: u64,
    graph: Option<GraphId>,
    fingerprint: Option<Fingerprint>,
    phase: Phase,
    state: State,
    flow: Flow,
    visits: BTreeMap<String, u32>,
    steps: u64,
    max_steps: u64,
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    budget: Budget,
    #[serde(default, skip_serializing_if = "TimeUsed::is_none")]
    time_used: TimeUsed,
    redrives: u32,
    open: BTreeMap<InterruptId, Interrupt>,
    counters: Counters,
    origin: Option<Origin>,
    fresh_at_ms: Option<i64>,
    /// The requests of the newest answers, oldest first.
    applied: VecDeque<String>,
}

/// Counts over a run's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Failed attempts of nodes.
    pub node_errors: u64,
    /// Lost workers.
    pub lost_workers: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    #[default]
    Unborn,
    Active,
    Completed,
    Failed(Reason),
    Cancelled,
}

impl Phase {
    const fn describe(&self) -> &'static str {
        match self {
            Self::Unborn => "has not begun",
            Self::Active => "is under way",
            Self::Completed => "is completed",
            Self::Failed(_) => "has failed",
            Self::Cancelled => "is cancelled",
        }
    }
}

impl Progress {
    /// The progress of a run that has no events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds events, the first of which is the run's first.
    ///
    /// # Errors
    /// When one does not follow from those before it.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, EngineError> {
        let mut progress = Self::new();
        for event in events {
            progress.apply(event)?;
        }
        Ok(progress)
    }

    /// How many events were folded.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The state; inside a fork, that of before it.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The graph, once the run began.
    #[must_use]
    pub const fn graph(&self) -> Option<&GraphId> {
        self.graph.as_ref()
    }

    /// The structure the run is pinned to, once it began.
    #[must_use]
    pub const fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }

    /// Distinct tasks that ended.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// The most distinct tasks of the run's life.
    #[must_use]
    pub const fn max_steps(&self) -> u64 {
        self.max_steps
    }

    /// What the run may use up before a person is asked, with what was added by answers.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// How much of a resource the run has used: steps, or ms. Time is counted only for a run that
    /// has a budget of it: as long as a worker had it, up to the newest event.
    #[must_use]
    pub const fn used(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Steps => self.steps,
            Resource::Time => self.time_used.ms,
        }
    }

    /// How often the run was redriven.
    #[must_use]
    pub const fn redrives(&self) -> u32 {
        self.redrives
    }

    /// Counts over the run's life.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The open questions, by id.
    pub fn open(&self) -> impl Iterator<Item = &Interrupt> {
        self.open.values()
    }

    /// One open question.
    #[must_use]
    pub fn question(&self, id: &InterruptId) -> Option<&Interrupt> {
        self.open.get(id)
    }

    /// Where a forked or replayed run comes from.
    #[must_use]
    pub const fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Whether the request brought one of the newest answers: a copy of it that was late on its
    /// way must answer nothing again.
    #[must_use]
    pub fn has_applied(&self, request: &str) -> bool {
        self.applied.iter().any(|known| known == request)
    }

    /// When a person last said that the run's plan is good.
    #[must_use]
    pub const fn fresh_at_ms(&self) -> Option<i64> {
        self.fresh_at_ms
    }

    /// How often the run came to each node.
    #[must_use]
    pub const fn visits(&self) -> &BTreeMap<String, u32> {
        &self.visits
    }

    /// Whether the run began.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.phase != Phase::Unborn
    }

    /// The terminal state the events lead to, if they do.
    #[must_use]
    pub const fn end(&self) -> Option<RunStatus> {
        match self.phase {
            Phase::Unborn | Phase::Active => None,
            Phase::Completed => Some(RunStatus::Completed),
            Phase::Failed(_) => Some(RunStatus::Failed),
            Phase::Cancelled => Some(RunStatus::Cancelled),
        }
    }

    /// Why the run failed.
    #[must_use]
    pub const fn reason(&self) -> Option<&Reason> {
        match &self.phase {
            Phase::Failed(reason) => Some(reason),
            Phase::Unborn | Phase::Active | Phase::Completed | Phase::Cancelled => None,
        }
    }

    /// Whether the run began and has not ended.
    pub(crate) fn is_active(&self) -> bool {
        self.phase == Phase::Active
    }

    /// Whether the flow has come to its end.
    pub(crate) fn has_arrived(&self) -> bool {
        self.phase == Phase::Active && self.flow == Flow::Arrived
    }

    pub(crate) const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Whether the whole run waits for an answer, whatever its tasks may do.
    pub(crate) fn is_held(&self) -> bool {
        self.open.values().any(|open| open.task.is_none())
    }

    /// The live tasks, in the order of their branches.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView<'_>> {
        let mut found = Vec::new();
        self.visit_tasks(|branch, inner, status| {
            found.push(TaskView { task: inner.name(branch), inner, status });
        });
        found
    }

    /// Visits the live tasks without making names of them, in the order of their branches.
    pub(crate) fn visit_tasks<'a>(&'a self, mut visit: impl FnMut(&[u32], &'a Task, TaskStatus)) {
        // A place has at most one task, so the place alone says which task is asked.
        let places = self.open.values().filter_map(|open| open.task.as_ref());
        let asked: BTreeSet<&[u32]> = places.map(|task| task.branch.as_slice()).collect();
        let mut each = |branch: &[u32], inner: &'a Task| {
            visit(branch, inner, inner.status(asked.contains(branch)));
        };
        visit_tasks(&self.flow, &mut Vec::new(), &mut each);
    }

    /// When a task next starts again by itself, or a question answers itself, after `now_ms`.
    #[must_use]
    pub fn next_due_ms(&self, now_ms: i64) -> Option<i64> {
        let mut due = self.open.values().filter_map(Interrupt::wakes_at_ms);
        let mut next = due.by_ref().filter(|at| *at > now_ms).min();
        visit_tasks(&self.flow, &mut Vec::new(), &mut |_, inner| {
            let at = inner.starts_at_ms().filter(|at| inner.is_waiting() && *at > now_ms);
            next = next.into_iter().chain(at).min();
        });
        next
    }

    /// A live task.
    #[must_use]
    pub fn task(&self, task: &TaskRef) -> Option<&Task> {
        match self.place(&task.branch)? {
            Flow::Task(inner) if inner.node == task.node && inner.visit == task.visit => {
                Some(inner)
            }
            Flow::Task(_) | Flow::Fork(_) | Flow::Arrived => None,
        }
    }

    /// The message of a task's failed route.
    #[must_use]
    pub fn unrouted<'a>(&self, task: &'a Task) -> Option<&'a str> {
        task.unrouted()
    }

    /// The state that a branch sees.
    #[must_use]
    pub fn state_at(&self, branch: &[u32]) -> Option<&State> {
        let (mut state, mut flow) = (&self.state, &self.flow);
        for index in branch {
            let inner = branch_of(flow, *index)?;
            (state, flow) = (&inner.state, &inner.flow);
        }
        Some(state)
    }

    fn place(&self, branch: &[u32]) -> Option<&Flow> {
        branch.iter().try_fold(&self.flow, |flow, index| Some(&branch_of(flow, *index)?.flow))
    }

    /// The join that encloses a place, [`END`] for the root.
    pub(crate) fn join_around(&self, branch: &[u32]) -> Option<&str> {
        let (_, outer) = branch.split_last().unzip();
        match outer {
            None => Some(END),
            Some(outer) => match self.place(outer)? {
                Flow::Fork(fork) => Some(&fork.join),
                Flow::Task(_) | Flow::Arrived => None,
            },
        }
    }
}
