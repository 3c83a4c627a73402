//! The engine: what may run next, and what a node's result does. Pure and synchronous.
//!
//! `executor` drives it: it asks [`Engine::next`], runs tasks, hands their results to
//! [`Engine::complete`] or [`Engine::fail`], and commits the events that come back. Every call
//! that returns events has applied them to the progress already.

mod answers;
mod join;
mod next;
mod patches;
mod questions;
mod routing;

pub use self::{answers::AnswerFault, next::Next};
use crate::{
    Beginning, CompiledGraph, Effect, Event, Failure, GraphId, NodeError, Patch, Progress, Reason,
    Routing, RunId, RunLimits, State, TaskRef, TaskStatus, Update,
};

/// A compiled graph and the run it moves.
#[derive(Debug, Clone)]
pub struct Engine {
    graph: CompiledGraph,
    run: RunId,
}

/// What a node that ended well did.
struct Done {
    patches: Vec<Patch>,
    next: Routing,
    counted: bool,
}

impl Engine {
    /// An engine for one run of `graph`.
    #[must_use]
    pub const fn new(graph: CompiledGraph, run: RunId) -> Self {
        Self { graph, run }
    }

    /// The graph.
    #[must_use]
    pub const fn graph(&self) -> &CompiledGraph {
        &self.graph
    }

    /// The first event of a run that begins at the entry: `base` is the session's last state (or
    /// the empty one), `input` goes over it through the reducers.
    ///
    /// # Panics
    /// When a reducer function of the caller's panics.
    #[must_use]
    pub fn start(&self, base: &State, input: State, limits: impl Into<RunLimits>) -> Event {
        let state = self.graph.schema().apply_update(base, input);
        let entry = self.graph.entry().to_owned();
        self.started(Beginning::Entry { state, entry }, limits)
    }

    /// The first event of a run with any beginning.
    #[must_use]
    pub fn started(&self, begin: Beginning, limits: impl Into<RunLimits>) -> Event {
        let graph: GraphId = self.graph.id().clone();
        let fingerprint = self.graph.fingerprint().clone();
        let RunLimits { max_steps, budget } = limits.into();
        Event::RunStarted { graph, fingerprint, max_steps, budget, begin }
    }

    /// Takes what a node returned: its patches, and where the run goes on.
    ///
    /// # Errors
    /// A permanent error of the node, when its update breaks a rule; the progress is unchanged.
    pub fn complete(
        &self,
        progress: &mut Progress,
        task: &TaskRef,
        update: Update,
    ) -> Result<Event, NodeError> {
        let Done { patches, next, counted } = self.done(progress, task, update)?;
        Ok(Event::NodeCompleted { task: task.clone(), patches, next, counted })
    }

    fn done(
        &self,
        progress: &mut Progress,
        task: &TaskRef,
        update: Update,
    ) -> Result<Done, NodeError> {
        let node = self.graph.node(&task.node);
        let node = node.ok_or_else(|| NodeError::permanent("the graph has no such node"))?;
        let live = progress.task(task).filter(|live| live.is_waiting());
        let live = live.ok_or_else(|| NodeError::permanent("the run does not stand there"))?;
        if let Some(key) = live.unanswered() {
            let text = format!("the node ended without the answer to its ask {key:?}");
            return Err(NodeError::permanent(text).with_code("NonDeterministicNode"));
        }
        let (patches, goto) = self.patches(progress, node, task, update)?;
        progress.write(&task.branch, &patches).map_err(NodeError::permanent)?;
        let next = match goto {
            Some(next) => self.checked(progress, task, Ok(next)),
            None => self.route(progress, task),
        };
        let counted = !node.is_router();
        progress.complete(task, &next, counted).map_err(NodeError::permanent)?;
        progress.count();
        Ok(Done { patches, next, counted })
    }

    /// Takes a node's error; `retry_at_ms` is none when it does not run again.
    ///
    /// # Panics
    /// Never for a live task.
    pub fn fail(
        &self,
        progress: &mut Progress,
        task: &TaskRef,
        error: &NodeError,
        retry_at_ms: Option<i64>,
    ) -> Event {
        let attempt = progress.task(task).map_or(1, crate::Task::attempt);
        let error = Failure { code: error.code().to_owned(), message: error.message().to_owned() };
        let event = Event::NodeFailed { task: task.clone(), attempt, error, retry_at_ms };
        progress.apply(&event).expect("the task is live");
        event
    }

    /// What follows by itself from where the run stands: forks whose branches are all there join,
    /// gates that were reached open. Returns the reason when a join finds a conflict.
    ///
    /// # Panics
    /// Never: the events are made of the progress they are applied to.
    pub fn settle(&self, progress: &mut Progress, now_ms: i64) -> (Vec<Event>, Option<Reason>) {
        let mut events = Vec::new();
        if !progress.is_active() {
            return (events, None);
        }
        while let Some(joined) = self.join(progress) {
            match joined {
                Ok(event) => {
                    progress.apply(&event).expect("all branches have arrived");
                    events.push(event);
                }
                Err(reason) => return (events, Some(reason)),
            }
        }
        for event in self.gates(progress, now_ms) {
            progress.apply(&event).expect("the task is live");
            events.push(event);
        }
        (events, None)
    }

    /// Asks the routes again that failed before; for the first commit after a redrive.
    ///
    /// # Panics
    /// Never: the event is made of the progress it is applied to.
    pub fn reroute(&self, progress: &mut Progress) -> Vec<Event> {
        let mut open: Vec<TaskRef> = Vec::new();
        let is_active = progress.is_active();
        progress.visit_tasks(|branch, inner, status| {
            if is_active && status == TaskStatus::Unrouted {
                open.push(inner.name(branch));
            }
        });
        let route = |task: TaskRef| {
            let next = self.route(progress, &task);
            let event = Event::NodeRouted { task, next };
            progress.apply(&event).expect("the task is live");
            event
        };
        open.into_iter().map(route).collect()
    }

    /// The effect class of a node; the default one when the graph has no such node.
    #[must_use]
    pub fn effect(&self, node: &str) -> Effect {
        self.graph.node(node).map(crate::Node::effect).unwrap_or_default()
    }
}
