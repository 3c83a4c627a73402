//! Progress: the fold of a run's events. State and position, and nothing that needs a graph.
//!
//! The same fold serves the first start, recovery, forks, the command line and the dashboard.
//! It is a tree: a flow is one task, or a fork whose branches are flows again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Answer, Beginning, BranchStart, END, Event, Failure, Fingerprint, Fork, GraphId, Interrupt,
    InterruptId, InterruptKind, Origin, Outcome, Patch, Reason, Routing, RunStatus, State, TaskRef,
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
    redrives: u32,
    open: BTreeMap<InterruptId, Interrupt>,
    counters: Counters,
    origin: Option<Origin>,
    fresh_at_ms: Option<i64>,
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

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Flow {
    /// The flow has come to the join of its fork; the root flow to the end.
    #[default]
    Arrived,
    Task(Box<Task>),
    Fork(ForkState),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForkState {
    pub(crate) join: String,
    pub(crate) branches: Vec<Branch>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Branch {
    /// The node it began at; names the branch in messages.
    pub(crate) first: String,
    pub(crate) state: State,
    pub(crate) writes: Vec<Patch>,
    pub(crate) flow: Flow,
}

/// One coming of the run to a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    node: String,
    visit: u32,
    phase: TaskPhase,
    failures: u32,
    error: Option<Failure>,
    retry_at_ms: Option<i64>,
    answer: Option<Answer>,
    calls: Vec<Call>,
    begun: Vec<Option<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskPhase {
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
        collect(&self.flow, &mut Vec::new(), &mut found);
        let status = |task: &TaskRef, inner: &Task| match inner.phase {
            TaskPhase::Failed => TaskStatus::Failed,
            TaskPhase::Unrouted(_) => TaskStatus::Unrouted,
            TaskPhase::Waiting if self.is_asked(task) => TaskStatus::Asked,
            TaskPhase::Waiting if inner.retry_at_ms.is_some() => TaskStatus::Retrying,
            TaskPhase::Waiting => TaskStatus::Ready,
        };
        let view = |(task, inner)| TaskView { status: status(&task, inner), task, inner };
        found.into_iter().map(view).collect()
    }

    fn is_asked(&self, task: &TaskRef) -> bool {
        !self.open.is_empty() && self.open.values().any(|open| open.task.as_ref() == Some(task))
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
        match &task.phase {
            TaskPhase::Unrouted(why) => Some(why),
            TaskPhase::Waiting | TaskPhase::Failed => None,
        }
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

    /// Folds one event more.
    ///
    /// # Errors
    /// When it does not follow; the progress is then to be thrown away.
    pub fn apply(&mut self, event: &Event) -> Result<(), EngineError> {
        let seq = self.seq;
        self.fold_one(event).map_err(|why| EngineError { seq, event: event.type_name(), why })?;
        self.seq += 1;
        Ok(())
    }

    fn fold_one(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::RunStarted { graph, fingerprint, max_steps, begin } => {
                self.graph = Some(graph.clone());
                self.fingerprint = Some(fingerprint.clone());
                self.max_steps = *max_steps;
                self.begin(begin)
            }
            Event::Claimed { .. } | Event::RunParked { .. } | Event::RunRescheduled { .. } => {
                Ok(())
            }
            Event::WorkerLost { .. } => {
                self.counters.lost_workers += 1;
                Ok(())
            }
            Event::NodeStarted { task, step, .. } => {
                self.task_mut(task)?.begun.push(step.clone());
                Ok(())
            }
            Event::StepRecorded { task, key, value } => {
                let inner = self.task_mut(task)?;
                inner.step_done(key, value);
                Ok(())
            }
            Event::NodeCompleted { task, patches, next, counted } => {
                self.task_mut(task)?;
                self.write(&task.branch, patches)?;
                self.complete(task, next, *counted)
            }
            Event::NodeRouted { task, next } => self.advance(task, next),
            Event::NodeFailed { task, error, retry_at_ms, .. } => {
                self.counters.node_errors += 1;
                self.task_mut(task)?.fail(error, *retry_at_ms);
                Ok(())
            }
            Event::BranchJoined { branch, patches } => {
                self.write(branch, patches)?;
                self.join(branch)
            }
            Event::InterruptOpened { interrupt } => self.ask(interrupt),
            Event::InterruptAnswered { interrupt, answer, outcome, .. } => {
                self.answer(interrupt, answer, outcome)
            }
            Event::StateEdited { patches, .. } => {
                self.state.apply(patches);
                Ok(())
            }
            Event::Migrated { to, .. } => {
                self.fingerprint = Some(to.clone());
                Ok(())
            }
            Event::RunCompleted => self.end_as(Phase::Completed),
            Event::RunFailed { reason } => self.end_as(Phase::Failed(reason.clone())),
            Event::RunCancelled { .. } => self.end_as(Phase::Cancelled),
            Event::Redriven { max_steps, .. } => self.redrive(*max_steps),
        }
    }

    fn begin(&mut self, begin: &Beginning) -> Result<(), String> {
        if self.is_begun() {
            return Err("the run has begun already".to_owned());
        }
        self.phase = Phase::Active;
        match begin {
            Beginning::Entry { state, entry } => {
                self.state = state.clone();
                self.flow = self.enter(entry);
            }
            Beginning::Checkpoint { origin, progress, patches } => {
                let theirs = (**progress).clone();
                self.state = theirs.state;
                self.flow = theirs.flow;
                self.visits = theirs.visits;
                self.state.apply(patches);
                self.origin = Some(origin.clone());
                each_task(&mut self.flow, &mut Task::forget_what_is_open);
            }
        }
        Ok(())
    }

    /// A new task at `node`, counted as a visit.
    fn enter(&mut self, node: &str) -> Flow {
        let visit = self.visits.entry(node.to_owned()).or_insert(0);
        *visit += 1;
        Flow::Task(Box::new(Task { node: node.to_owned(), visit: *visit, ..Task::default() }))
    }

    fn task_mut(&mut self, task: &TaskRef) -> Result<&mut Task, String> {
        let Flow::Task(inner) = self.place_mut(&task.branch)? else {
            return Err(format!("there is no task {task:?}"));
        };
        if inner.node != task.node || inner.visit != task.visit {
            return Err(format!("{}#{} stands where {task:?} should", inner.node, inner.visit));
        }
        Ok(inner)
    }

    fn place_mut(&mut self, branch: &[u32]) -> Result<&mut Flow, String> {
        let mut flow = &mut self.flow;
        for index in branch {
            flow = &mut branch_of_mut(flow, *index)?.flow;
        }
        Ok(flow)
    }

    /// Applies patches to the state of a place.
    pub(crate) fn write(&mut self, branch: &[u32], patches: &[Patch]) -> Result<(), String> {
        let Some((last, outer)) = branch.split_last() else {
            self.state.apply(patches);
            return Ok(());
        };
        let inner = branch_of_mut(self.place_mut(outer)?, *last)?;
        inner.state.apply(patches);
        inner.writes.extend(patches.iter().cloned());
        Ok(())
    }

    /// Counts an event that was applied piece by piece.
    pub(crate) const fn count(&mut self) {
        self.seq += 1;
    }

    /// What follows when a node's patches are applied: the step is counted, the flow goes on.
    pub(crate) fn complete(
        &mut self,
        task: &TaskRef,
        next: &Routing,
        counted: bool,
    ) -> Result<(), String> {
        self.steps += u64::from(counted);
        self.open.retain(|_, open| open.task.as_ref() != Some(task));
        self.advance(task, next)
    }

    fn advance(&mut self, task: &TaskRef, next: &Routing) -> Result<(), String> {
        self.task_mut(task)?;
        let flow = match next {
            Routing::Unresolved(why) => {
                let inner = self.task_mut(task)?;
                inner.phase = TaskPhase::Unrouted(why.clone());
                inner.begun.clear();
                return Ok(());
            }
            Routing::To(node) => self.arrive_or_enter(&task.branch, node)?,
            Routing::Fork(fork) => {
                let state = self.state_at(&task.branch).cloned().unwrap_or_default();
                self.fork(fork, &state)
            }
        };
        *self.place_mut(&task.branch)? = flow;
        Ok(())
    }

    /// The flow of a place that goes on at `node`: at the join around it, it has arrived.
    fn arrive_or_enter(&mut self, branch: &[u32], node: &str) -> Result<Flow, String> {
        if self.join_around(branch) == Some(node) {
            return Ok(Flow::Arrived);
        }
        if node == END {
            return Err("a branch ends before its join".to_owned());
        }
        Ok(self.enter(node))
    }

    fn fork(&mut self, fork: &Fork, state: &State) -> Flow {
        let branches = fork.branches.iter().map(|start| {
            let mut state = state.clone();
            let (first, flow) = match start {
                BranchStart::Join => (fork.join.clone(), Flow::Arrived),
                BranchStart::Fork(inner) => {
                    (format!("to {}", inner.join), self.fork(inner, &state))
                }
                BranchStart::Node { node, input } => {
                    for (key, value) in input.iter().flatten() {
                        state.set(key.clone(), value.clone());
                    }
                    (node.clone(), self.enter(node))
                }
            };
            Branch { first, state, writes: Vec::new(), flow }
        });
        let branches = branches.collect();
        Flow::Fork(ForkState { join: fork.join.clone(), branches })
    }

    fn join(&mut self, branch: &[u32]) -> Result<(), String> {
        let join = match self.place(branch) {
            Some(Flow::Fork(fork)) if fork.branches.iter().all(|b| b.flow == Flow::Arrived) => {
                fork.join.clone()
            }
            Some(Flow::Fork(_) | Flow::Task(_) | Flow::Arrived) | None => {
                return Err(format!("no fork at {branch:?} has all its branches"));
            }
        };
        let flow = self.arrive_or_enter(branch, &join)?;
        *self.place_mut(branch)? = flow;
        Ok(())
    }

    fn ask(&mut self, interrupt: &Interrupt) -> Result<(), String> {
        if let (Some(task), Some(key)) = (&interrupt.task, &interrupt.key)
            && interrupt.kind == InterruptKind::Ask
        {
            let id = interrupt.interrupt.clone();
            let call = Call::Ask { key: key.clone(), interrupt: id, answer: None };
            self.task_mut(task)?.calls.push(call);
        }
        self.open.insert(interrupt.interrupt.clone(), interrupt.clone());
        Ok(())
    }

    fn answer(
        &mut self,
        id: &InterruptId,
        answer: &Answer,
        outcome: &Outcome,
    ) -> Result<(), String> {
        let open = self.open.remove(id).ok_or_else(|| format!("{id} is not open"))?;
        let Some(task) = open.task else {
            self.fresh_at_ms = Some(answer.at_ms);
            return Ok(());
        };
        match outcome {
            Outcome::Answered => {
                self.task_mut(&task)?.answered(id, answer);
                Ok(())
            }
            Outcome::Rerouted(node) => self.advance(&task, &Routing::To(node.clone())),
            Outcome::Retry => {
                let inner = self.task_mut(&task)?;
                inner.begun.retain(|step| *step != open.key);
                Ok(())
            }
            Outcome::Completed { patches, next } => {
                self.write(&task.branch, patches)?;
                self.complete(&task, next, true)
            }
            Outcome::StepDone { key, value } => {
                self.task_mut(&task)?.step_done(key, value);
                Ok(())
            }
            Outcome::Failed(error) => {
                self.counters.node_errors += 1;
                self.task_mut(&task)?.fail(error, None);
                Ok(())
            }
            Outcome::Resumed | Outcome::Cancelled => Ok(()),
        }
    }

    fn end_as(&mut self, phase: Phase) -> Result<(), String> {
        if let Some(end) = self.end() {
            return Err(format!("the run is {} already", end.as_str()));
        }
        self.phase = phase;
        self.open.clear();
        Ok(())
    }

    /// Failed tasks get all their attempts again, open questions are asked anew, and what is
    /// recorded or answered stays.
    fn redrive(&mut self, max_steps: Option<u64>) -> Result<(), String> {
        match self.phase {
            Phase::Failed(_) => {}
            Phase::Unborn | Phase::Active | Phase::Completed | Phase::Cancelled => {
                return Err("the run has not failed".to_owned());
            }
        }
        // A run that failed before it began (expired, undecodable) begins now.
        self.phase = if self.graph.is_some() { Phase::Active } else { Phase::Unborn };
        self.redrives += 1;
        self.max_steps = max_steps.unwrap_or(self.max_steps);
        each_task(&mut self.flow, &mut Task::redrive);
        Ok(())
    }
}

impl Task {
    fn answered(&mut self, id: &InterruptId, given: &Answer) {
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

    fn step_done(&mut self, key: &str, value: &Value) {
        self.begun.retain(|step| step.as_deref() != Some(key));
        self.calls.push(Call::Step { key: key.to_owned(), value: value.clone() });
    }

    fn fail(&mut self, error: &Failure, retry_at_ms: Option<i64>) {
        self.failures += 1;
        self.error = Some(error.clone());
        self.retry_at_ms = retry_at_ms;
        self.begun.clear();
        if retry_at_ms.is_none() {
            self.phase = TaskPhase::Failed;
        }
    }

    fn forget_what_is_open(&mut self) {
        let is_kept = |call: &Call| match call {
            Call::Step { .. } | Call::Ask { answer: Some(_), .. } => true,
            Call::Ask { answer: None, .. } => false,
        };
        self.calls.retain(is_kept);
        self.begun.clear();
        self.failures = 0;
        self.retry_at_ms = None;
    }

    fn redrive(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        self.forget_what_is_open();
        self.begun = begun;
        if self.phase == TaskPhase::Failed {
            self.phase = TaskPhase::Waiting;
        }
    }
}

fn branch_of(flow: &Flow, index: u32) -> Option<&Branch> {
    match flow {
        Flow::Fork(fork) => fork.branches.get(index as usize),
        Flow::Task(_) | Flow::Arrived => None,
    }
}

fn branch_of_mut(flow: &mut Flow, index: u32) -> Result<&mut Branch, String> {
    let found = match flow {
        Flow::Fork(fork) => fork.branches.get_mut(index as usize),
        Flow::Task(_) | Flow::Arrived => None,
    };
    found.ok_or_else(|| format!("there is no branch {index}"))
}

fn collect<'a>(flow: &'a Flow, branch: &mut Vec<u32>, found: &mut Vec<(TaskRef, &'a Task)>) {
    match flow {
        Flow::Arrived => {}
        Flow::Task(task) => {
            let place = branch.clone();
            let name = TaskRef { node: task.node.clone(), visit: task.visit, branch: place };
            found.push((name, task));
        }
        Flow::Fork(fork) => {
            for (index, inner) in (0..).zip(&fork.branches) {
                branch.push(index);
                collect(&inner.flow, branch, found);
                branch.pop();
            }
        }
    }
}

fn each_task(flow: &mut Flow, change: &mut impl FnMut(&mut Task)) {
    match flow {
        Flow::Arrived => {}
        Flow::Task(task) => change(task),
        Flow::Fork(fork) => {
            for branch in &mut fork.branches {
                each_task(&mut branch.flow, change);
            }
        }
    }
}
