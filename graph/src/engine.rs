//! The engine: what may run next, and what a node's result does. Pure and synchronous.
//!
//! `executor` drives it: it asks [`Engine::next`], runs tasks, hands their results to
//! [`Engine::complete`] or [`Engine::fail`], and commits the events that come back. Every call
//! that returns events has applied them to the progress already.

mod join;
mod patches;
mod routing;

use crate::{
    Answer, Beginning, Call, CompiledGraph, Effect, Event, Failure, GraphId, Interrupt,
    InterruptId, InterruptKind, NodeError, Outcome, Progress, Question, Reason, ReasonCode, RunId,
    State, TaskRef, TaskStatus, Update, fingerprint::of_parts,
};

/// What a run does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// These tasks may run, in the order of their branches; some may run already.
    Run(Vec<TaskRef>),
    /// Nothing may run before an answer comes, or this time (ms since 1970).
    Wait {
        /// The next time at which something happens by itself.
        wake_at_ms: Option<i64>,
        /// Whether only the time is waited for: no question is open.
        is_timer: bool,
    },
    /// The run has come to its end.
    Finished,
    /// The run fails, once what runs has ended.
    Failed(Reason),
}

/// A compiled graph and the run it moves.
#[derive(Debug, Clone)]
pub struct Engine {
    graph: CompiledGraph,
    run: RunId,
}

/// Why an answer cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// The question is not open.
    #[error("the question {0} is not open")]
    NotOpen(InterruptId),
    /// The answer does not fit the question.
    #[error(transparent)]
    Unfit(#[from] crate::Refusal),
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
    pub fn start(&self, base: &State, input: State, max_steps: u64) -> Event {
        let state = self.graph.schema().apply_update(base, input);
        let entry = self.graph.entry().to_owned();
        self.started(Beginning::Entry { state, entry }, max_steps)
    }

    /// The first event of a run with any beginning.
    #[must_use]
    pub fn started(&self, begin: Beginning, max_steps: u64) -> Event {
        let graph: GraphId = self.graph.id().clone();
        Event::RunStarted { graph, fingerprint: self.graph.fingerprint().clone(), max_steps, begin }
    }

    /// What the run does next; `now_ms` is the store's time.
    #[must_use]
    pub fn next(&self, progress: &Progress, now_ms: i64) -> Next {
        if progress.has_arrived() {
            return Next::Finished;
        }
        let deadlines = progress.open().filter_map(|open| open.deadline_ms);
        let mut wake_at_ms = deadlines.min();
        let (mut ready, mut has_router) = (Vec::new(), false);
        for view in progress.tasks() {
            match view.status {
                TaskStatus::Failed | TaskStatus::Unrouted => {
                    return Next::Failed(failed_for_good(progress, &view.task));
                }
                TaskStatus::Asked => {}
                TaskStatus::Retrying if view.inner.retry_at_ms().is_some_and(|at| at > now_ms) => {
                    let at = view.inner.retry_at_ms();
                    wake_at_ms = wake_at_ms.into_iter().chain(at).min();
                }
                TaskStatus::Ready | TaskStatus::Retrying => {
                    has_router |= self.is_router(&view.task);
                    ready.push(view.task);
                }
            }
        }
        if progress.is_held() || ready.is_empty() {
            let is_timer = progress.open().next().is_none();
            return Next::Wait { wake_at_ms, is_timer };
        }
        let left = progress.max_steps().saturating_sub(progress.steps());
        if left == 0 && !has_router {
            return Next::Failed(step_limit(progress, ready.first()));
        }
        let mut left = usize::try_from(left).unwrap_or(usize::MAX);
        ready.retain(|task| {
            let is_router = self.is_router(task);
            let may_run = is_router || left > 0;
            left = left.saturating_sub(usize::from(!is_router));
            may_run
        });
        Next::Run(ready)
    }

    fn is_router(&self, task: &TaskRef) -> bool {
        self.graph.node(&task.node).is_some_and(crate::Node::is_router)
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
        let node = self.graph.node(&task.node);
        let node = node.ok_or_else(|| NodeError::permanent("the graph has no such node"))?;
        if let Some(live) = progress.task(task) {
            let unasked = live.calls().iter().find_map(|call| match call {
                Call::Ask { key, answer: None, .. } => Some(key),
                Call::Step { .. } | Call::Ask { answer: Some(_), .. } => None,
            });
            if let Some(key) = unasked {
                let text = format!("the node ended without the answer to its ask {key:?}");
                return Err(NodeError::permanent(text).with_code("NonDeterministicNode"));
            }
        }
        let (patches, goto) = self.patches(progress, node, task, update)?;
        let write = |progress: &mut Progress| progress.write(&task.branch, &patches);
        write(progress).map_err(NodeError::permanent)?;
        let next = match goto {
            Some(next) => next,
            None => self.route(progress, task),
        };
        let counted = !node.is_router();
        progress.complete(task, &next, counted).map_err(NodeError::permanent)?;
        progress.count();
        Ok(Event::NodeCompleted { task: task.clone(), patches, next, counted })
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

    fn gates(&self, progress: &Progress, now_ms: i64) -> Vec<Event> {
        let is_closed = |view: &crate::TaskView<'_>| {
            let gate = self.graph.node(&view.task.node).and_then(crate::Node::gate);
            view.status == TaskStatus::Ready && view.inner.answer().is_none() && gate.is_some()
        };
        let open = |view: crate::TaskView<'_>| {
            let node = self.graph.node(&view.task.node)?;
            let gate = node.gate()?;
            let state = node.view(progress.state_at(&view.task.branch)?);
            let id = self.interrupt_id(progress, &view.task, "gate");
            let interrupt = Interrupt::of_question(id, gate.question(), &state).opened_at(now_ms);
            let interrupt = Interrupt {
                task: Some(view.task),
                gate: Some(gate.name().to_owned()),
                kind: InterruptKind::Gate,
                ..interrupt
            };
            Some(Event::InterruptOpened { interrupt })
        };
        progress.tasks().into_iter().filter(is_closed).filter_map(open).collect()
    }

    /// The id of one opening: the same whenever it is computed, another after a redrive.
    fn interrupt_id(&self, progress: &Progress, task: &TaskRef, key: &str) -> InterruptId {
        let (visit, round) = (task.visit.to_string(), progress.redrives().to_string());
        let id = of_parts(&["interrupt", self.run.as_str(), &task.node, &visit, key, &round]);
        InterruptId::new(id).expect("base 32 is within the alphabet of ids")
    }

    /// The event that opens a node's own question.
    #[must_use]
    pub fn ask(
        &self,
        progress: &Progress,
        task: &TaskRef,
        key: &str,
        question: &Question,
        now_ms: i64,
    ) -> Event {
        let id = self.interrupt_id(progress, task, &format!("ask {key}"));
        let state = progress.state_at(&task.branch).cloned().unwrap_or_default();
        let state = self.graph.node(&task.node).map(|node| node.view(&state)).unwrap_or(state);
        let interrupt = Interrupt {
            task: Some(task.clone()),
            key: Some(key.to_owned()),
            ..Interrupt::of_question(id, question, &state).opened_at(now_ms)
        };
        Event::InterruptOpened { interrupt }
    }

    /// The questions about unsafe effects that an earlier owner began and did not end.
    ///
    /// # Panics
    /// Never: the events are made of the progress they are applied to.
    pub fn recover(&self, progress: &mut Progress, now_ms: i64) -> Vec<Event> {
        let mut events = Vec::new();
        for view in progress.tasks() {
            let is_open = view.status == TaskStatus::Asked;
            for step in view.inner.begun().iter().filter(|_| !is_open) {
                let key = format!("uncertain {}", step.as_deref().unwrap_or_default());
                let key = format!("{key} {}", progress.counters().lost_workers);
                let id = self.interrupt_id(progress, &view.task, &key);
                let name = match step {
                    Some(step) => format!("{}/{step}", view.task.node),
                    None => view.task.node.clone(),
                };
                let interrupt = Interrupt {
                    task: Some(view.task.clone()),
                    key: step.clone(),
                    ..Interrupt::uncertain(id, &name).opened_at(now_ms)
                };
                events.push(Event::InterruptOpened { interrupt });
            }
        }
        for event in &events {
            progress.apply(event).expect("the task is live");
        }
        events
    }

    /// The question whether a run that has not moved for `idle_ms` may go on.
    #[must_use]
    pub fn stale(&self, progress: &Progress, idle_ms: i64, now_ms: i64) -> Event {
        let seq = progress.seq().to_string();
        let id = of_parts(&["interrupt", self.run.as_str(), "stale", &seq]);
        let id = InterruptId::new(id).expect("base 32 is within the alphabet of ids");
        Event::InterruptOpened { interrupt: Interrupt::stale(id, idle_ms).opened_at(now_ms) }
    }

    /// Takes the answer to an open question.
    ///
    /// # Errors
    /// When it is not open or does not fit; the progress is unchanged.
    ///
    /// # Panics
    /// Never: the event is made of the progress it is applied to.
    pub fn answer(
        &self,
        progress: &mut Progress,
        id: &InterruptId,
        answer: Answer,
        request: &str,
    ) -> Result<Event, AnswerFault> {
        let open = progress.question(id).ok_or_else(|| AnswerFault::NotOpen(id.clone()))?;
        crate::gate::check_answer(open.schema.as_ref(), &answer.value)?;
        let open = open.clone();
        let outcome = match open.kind {
            InterruptKind::Gate => self.gate_outcome(&open, &answer),
            InterruptKind::Ask | InterruptKind::Budget => Outcome::Answered,
            InterruptKind::Uncertain => self.uncertain_outcome(progress, &open, &answer)?,
            InterruptKind::Stale if answer.value == "cancel" => Outcome::Cancelled,
            InterruptKind::Stale => Outcome::Resumed,
        };
        let request = request.to_owned();
        let event = Event::InterruptAnswered { interrupt: id.clone(), answer, request, outcome };
        progress.apply(&event).expect("the question is open");
        Ok(event)
    }

    fn gate_outcome(&self, open: &Interrupt, answer: &Answer) -> Outcome {
        let node = open.task.as_ref().and_then(|task| self.graph.node(&task.node));
        let rejection = node.and_then(crate::Node::gate).and_then(crate::Gate::rejection);
        match rejection {
            Some(target) if answer.is_rejection() => Outcome::Rerouted(target.to_owned()),
            Some(_) | None => Outcome::Answered,
        }
    }

    fn uncertain_outcome(
        &self,
        progress: &Progress,
        open: &Interrupt,
        answer: &Answer,
    ) -> Result<Outcome, crate::Refusal> {
        let result = answer.value.get("result");
        let word = answer.value.as_str().unwrap_or_default();
        match (&open.key, &open.task) {
            _ if word == "retry" => Ok(Outcome::Retry),
            _ if word == "fail" => Ok(Outcome::Failed(Failure {
                code: "uncertain".to_owned(),
                message: format!("{} said that the uncertain effect failed", answer.by),
            })),
            (Some(key), _) => {
                let value = result.cloned().unwrap_or_default();
                Ok(Outcome::StepDone { key: key.clone(), value })
            }
            (None, Some(task)) => self.uncertain_node(progress, task, result),
            (None, None) => Ok(Outcome::Retry),
        }
    }

    /// The uncertain node counts as done: `result` is what it would have returned.
    fn uncertain_node(
        &self,
        progress: &Progress,
        task: &TaskRef,
        result: Option<&serde_json::Value>,
    ) -> Result<Outcome, crate::Refusal> {
        let no = |why: String| crate::Refusal::new(crate::Code::Schema, "answer.result", why);
        let update = match result {
            None => Update::new(),
            Some(value) => value
                .as_object()
                .ok_or_else(|| no("is no object of state keys".to_owned()))?
                .iter()
                .fold(Update::new(), |update, (key, value)| update.set(key, value)),
        };
        let mut copy = progress.clone();
        let event =
            self.complete(&mut copy, task, update).map_err(|fault| no(fault.to_string()))?;
        match event {
            Event::NodeCompleted { patches, next, .. } => Ok(Outcome::Completed { patches, next }),
            _ => Err(no("cannot be taken".to_owned())),
        }
    }

    /// Answers the questions whose deadline has passed with their default.
    pub fn expire(&self, progress: &mut Progress, now_ms: i64) -> Vec<Event> {
        let due = |open: &&Interrupt| open.deadline_ms.is_some_and(|at| at <= now_ms);
        let due: Vec<Interrupt> = progress.open().filter(due).cloned().collect();
        let answer = |open: Interrupt| {
            let value = open.default_answer.unwrap_or_default();
            let answer = Answer { value, by: "deadline".to_owned(), at_ms: now_ms, comment: None };
            self.answer(progress, &open.interrupt, answer, "deadline").ok()
        };
        due.into_iter().filter_map(answer).collect()
    }

    /// Asks the routes again that failed before; for the first commit after a redrive.
    ///
    /// # Panics
    /// Never: the event is made of the progress it is applied to.
    pub fn reroute(&self, progress: &mut Progress) -> Vec<Event> {
        let tasks = progress.tasks();
        let open = tasks.into_iter().filter(|view| view.status == TaskStatus::Unrouted);
        let open: Vec<TaskRef> = open.map(|view| view.task).collect();
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

fn failed_for_good(progress: &Progress, task: &TaskRef) -> Reason {
    let live = progress.task(task);
    let route = live.and_then(|live| progress.unrouted(live));
    let error = live.and_then(crate::Task::error);
    let message = match (route, error) {
        (Some(why), _) => why.to_owned(),
        (None, Some(error)) if error.code == "node_error" => error.message.clone(),
        (None, Some(error)) => format!("{}: {}", error.code, error.message),
        (None, None) => "failed".to_owned(),
    };
    Reason { code: ReasonCode::NodeError, message, node: Some(task.node.clone()) }
}

fn step_limit(progress: &Progress, next: Option<&TaskRef>) -> Reason {
    let mut rounds: Vec<(&String, &u32)> = progress.visits().iter().collect();
    rounds.sort_by_key(|(_, visits)| std::cmp::Reverse(**visits));
    let rounds: Vec<String> =
        rounds.iter().take(5).map(|(node, visits)| format!("{node} {visits} times")).collect();
    let message = format!(
        "the run used up its {} steps; it came to {}",
        progress.max_steps(),
        rounds.join(", ")
    );
    Reason { code: ReasonCode::StepLimit, message, node: next.map(|task| task.node.clone()) }
}
