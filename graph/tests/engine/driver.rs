//! A small synchronous run loop: no store, no runtime, and the test chooses what ends next.
//!
//! After every event it folds a second progress and takes the first one through its JSON, so
//! that every test also shows that a run can be cut and resumed at any event.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use holdpoint_graph::{
    Answer, AppendReducer, BoxFuture, Call, CompiledGraph, END, Effect, Engine, Event, Host,
    InterruptId, Next, NodeContext, NodeError, Progress, Question, Reason, RunId, RunLimits, State,
    StateGraph, StateSchema, StepStart, TaskInfo, TaskRef, Update,
};
use serde_json::Value;

/// A node that writes its id to the list `path`.
pub(crate) async fn step(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("path", ctx.node()))
}

/// The schema of the tests: `path` and `items` are lists.
pub(crate) fn lists() -> StateSchema {
    StateSchema::new().with("path", AppendReducer).with("items", AppendReducer)
}

/// A graph of plain edges; the first source is the entry, `END` the end.
pub(crate) fn plain(id: &str, edges: &[(&str, &str)]) -> StateGraph {
    let mut graph = StateGraph::new(id).with_schema(lists());
    let mut seen = BTreeSet::from(["END"]);
    for (from, to) in edges {
        for node in [from, to] {
            if seen.insert(node) {
                graph = graph.add_node(*node, step);
            }
        }
        graph = graph.add_edge(*from, if *to == "END" { END } else { to });
    }
    graph.set_entry_point(edges.first().unwrap().0)
}

/// What a node did through its context during one attempt.
#[derive(Debug)]
enum Did {
    Began(String),
    Ended(String, Value),
    Asked(String, Box<Question>),
}

struct TestHost {
    recorded: Vec<Call>,
    did: Mutex<Vec<Did>>,
}

impl Host for TestHost {
    fn step_begin<'a>(
        &'a self,
        key: &'a str,
        effect: Effect,
    ) -> BoxFuture<'a, Result<StepStart, NodeError>> {
        let known = self.recorded.iter().find_map(|call| match call {
            Call::Step { key: known, value } if known == key => Some(value.clone()),
            Call::Step { .. } | Call::Ask { .. } => None,
        });
        if known.is_none() && effect == Effect::Unsafe {
            self.did.lock().unwrap().push(Did::Began(key.to_owned()));
        }
        let start = known.map_or(StepStart::Run, StepStart::Recorded);
        Box::pin(std::future::ready(Ok(start)))
    }
    fn step_end<'a>(&'a self, key: &'a str, value: Value) -> BoxFuture<'a, Result<(), NodeError>> {
        self.did.lock().unwrap().push(Did::Ended(key.to_owned(), value));
        Box::pin(std::future::ready(Ok(())))
    }
    fn ask<'a>(
        &'a self,
        key: &'a str,
        question: Question,
    ) -> BoxFuture<'a, Result<Answer, NodeError>> {
        let known = self.recorded.iter().find_map(|call| match call {
            Call::Ask { key: known, answer: Some(answer), .. } if known == key => Some(answer),
            Call::Step { .. } | Call::Ask { .. } => None,
        });
        if let Some(answer) = known {
            return Box::pin(std::future::ready(Ok(answer.clone())));
        }
        self.did.lock().unwrap().push(Did::Asked(key.to_owned(), Box::new(question)));
        Box::pin(std::future::pending())
    }
    fn sleep_until<'a>(&'a self, _: i64) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
    fn emit(&self, _: Value) {}
    fn cancelled<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
    fn is_cancelled(&self) -> bool {
        false
    }
    fn now_ms(&self) -> i64 {
        0
    }
}

/// One run under way.
pub(crate) struct Driver {
    pub(crate) engine: Engine,
    pub(crate) progress: Progress,
    pub(crate) events: Vec<Event>,
    pub(crate) now_ms: i64,
    /// Whether every event is checked against a second fold; quadratic, so not for big runs.
    is_checked: bool,
    folded: Progress,
}

impl Driver {
    pub(crate) fn start(graph: &CompiledGraph, input: Value) -> Self {
        Self::start_with(graph, input, 1_000)
    }

    pub(crate) fn start_with(
        graph: &CompiledGraph,
        input: Value,
        limits: impl Into<RunLimits>,
    ) -> Self {
        Self::begin_run(graph, input, limits.into(), true)
    }

    pub(crate) fn unchecked(graph: &CompiledGraph, input: Value, max_steps: u64) -> Self {
        Self::begin_run(graph, input, max_steps.into(), false)
    }

    fn begin_run(graph: &CompiledGraph, input: Value, limits: RunLimits, is_checked: bool) -> Self {
        let engine = Engine::new(graph.clone(), RunId::new("run-1").unwrap());
        let event = engine.start(&State::new(), State::from_json(input).unwrap(), limits);
        let (progress, folded) = (Progress::new(), Progress::new());
        let mut driver =
            Self { engine, progress, events: vec![], now_ms: 1_000, is_checked, folded };
        driver.apply(event);
        driver.settle();
        driver
    }

    /// A run that another worker takes up after these events.
    pub(crate) fn resumed(graph: &CompiledGraph, events: &[Event]) -> Self {
        let engine = Engine::new(graph.clone(), RunId::new("run-1").unwrap());
        let (progress, folded) = (Progress::fold(events).unwrap(), Progress::fold(events).unwrap());
        let events = events.to_vec();
        let mut driver = Self { engine, progress, events, now_ms: 1_000, is_checked: true, folded };
        if driver.progress.end().is_none() {
            driver.recover();
            driver.settle();
        }
        driver
    }

    /// An event that the engine has not applied itself.
    pub(crate) fn apply(&mut self, event: Event) {
        self.progress.apply(&event).unwrap();
        self.record([event]);
    }

    /// Events that the engine has applied.
    pub(crate) fn record(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            if self.is_checked {
                let text = serde_json::to_string(&event).unwrap();
                let read: Event = serde_json::from_str(&text).unwrap();
                assert_eq!(read, event);
                self.folded.apply(&read).unwrap();
            }
            self.events.push(event);
        }
        if self.is_checked {
            assert_eq!(self.folded, self.progress, "the fold is not the live progress");
            let text = serde_json::to_string(&self.progress).unwrap();
            let read: Progress = serde_json::from_str(&text).unwrap();
            assert_eq!(read, self.progress, "a snapshot is not what was stored");
            self.progress = read;
        }
    }

    fn settle(&mut self) {
        let (events, conflict) = self.engine.settle(&mut self.progress, self.now_ms);
        self.record(events);
        if let Some(reason) = conflict {
            self.apply(Event::RunFailed { reason });
        }
    }

    pub(crate) fn next(&self) -> Next {
        self.engine.next(&self.progress, self.now_ms)
    }

    /// The nodes that may run now.
    pub(crate) fn ready(&self) -> Vec<String> {
        match self.next() {
            Next::Run(tasks) => tasks.into_iter().map(|task| task.node).collect(),
            Next::Wait { .. } | Next::Finished | Next::Failed(_) | Next::Spent(_) => vec![],
        }
    }

    /// Runs the first ready task of a node.
    pub(crate) fn run_node(&mut self, node: &str) {
        let Next::Run(tasks) = self.next() else { panic!("nothing may run: {:?}", self.next()) };
        let task = tasks.into_iter().find(|task| task.node == node);
        self.run_task(&task.unwrap_or_else(|| panic!("{node} is not ready: {:?}", self.ready())));
    }

    /// Records that an unsafe node begins.
    pub(crate) fn begin(&mut self, task: &TaskRef) {
        if self.engine.effect(&task.node) == Effect::Unsafe {
            let effect = Effect::Unsafe;
            self.apply(Event::NodeStarted { task: task.clone(), step: None, effect });
        }
    }

    /// One attempt of a task, from its beginning to its end or its question.
    pub(crate) fn run_task(&mut self, task: &TaskRef) {
        self.begin(task);
        match self.attempt(task) {
            None => {}
            Some(Ok(update)) => match self.engine.complete(&mut self.progress, task, update) {
                Ok(event) => self.record([event]),
                Err(fault) => self.fail(task, &fault),
            },
            Some(Err(fault)) => self.fail(task, &fault),
        }
        if self.progress.end().is_none() {
            self.settle();
        }
    }

    fn fail(&mut self, task: &TaskRef, fault: &NodeError) {
        let attempt = self.progress.task(task).unwrap().attempt();
        let node = self.engine.graph().node(&task.node).unwrap();
        let may_retry = !fault.is_permanent() && attempt < node.retry().attempts();
        let at_ms = may_retry.then_some(self.now_ms);
        let event = self.engine.fail(&mut self.progress, task, fault, at_ms);
        self.record([event]);
    }

    /// Polls the node once; what it did meanwhile is recorded. None: it asks.
    fn attempt(&mut self, task: &TaskRef) -> Option<Result<Update, NodeError>> {
        let live = self.progress.task(task).unwrap();
        let host = TestHost { recorded: live.calls().to_vec(), did: Mutex::default() };
        let host = Arc::new(host);
        let info = TaskInfo {
            run: RunId::new("run-1").unwrap(),
            session: None,
            graph: self.engine.graph().id().clone(),
            node: task.node.clone(),
            visit: task.visit,
            attempt: live.attempt(),
            branch: task.branch.clone(),
            epoch: 1,
            nonce: String::new(),
            answer: live.answer().cloned(),
        };
        let ctx = NodeContext::new(info, Arc::clone(&host) as Arc<dyn Host>);
        let node = self.engine.graph().node(&task.node).unwrap().clone();
        let mut future = node.call(ctx, node.view(self.progress.state_at(&task.branch).unwrap()));
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(future);
        for did in std::mem::take(&mut *host.did.lock().unwrap()) {
            let task = task.clone();
            match did {
                Did::Began(key) => {
                    let effect = Effect::Unsafe;
                    self.apply(Event::NodeStarted { task, step: Some(key), effect });
                }
                Did::Ended(key, value) => self.apply(Event::StepRecorded { task, key, value }),
                Did::Asked(key, question) => {
                    let now_ms = self.now_ms;
                    let event = self.engine.ask(&self.progress, &task, &key, &question, now_ms);
                    self.apply(event);
                }
            }
        }
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// Runs until nothing may run; `choose` says which of so many ready tasks is next.
    pub(crate) fn run_by(&mut self, mut choose: impl FnMut(usize) -> usize) -> Next {
        while self.progress.end().is_none() {
            match self.next() {
                Next::Run(tasks) => {
                    let task = tasks.get(choose(tasks.len()) % tasks.len()).unwrap().clone();
                    self.run_task(&task);
                }
                Next::Finished => {
                    self.apply(Event::RunCompleted);
                    return Next::Finished;
                }
                Next::Failed(reason) => {
                    self.apply(Event::RunFailed { reason: reason.clone() });
                    return Next::Failed(reason);
                }
                Next::Spent(resource) => {
                    let now_ms = self.now_ms;
                    let event = self.engine.over_budget(&self.progress, resource, now_ms);
                    self.apply(event);
                }
                wait @ Next::Wait { .. } => return wait,
            }
        }
        match self.progress.reason() {
            Some(reason) => Next::Failed(reason.clone()),
            None => Next::Finished,
        }
    }

    /// Runs in the order of the branches.
    pub(crate) fn run(&mut self) -> Next {
        self.run_by(|_| 0)
    }

    pub(crate) fn run_to_end(&mut self) -> &Self {
        assert_eq!(self.run(), Next::Finished);
        self
    }

    /// Runs to a failure and says why.
    pub(crate) fn run_to_failure(&mut self) -> Reason {
        match self.run() {
            Next::Failed(reason) => reason,
            other @ (Next::Run(_) | Next::Wait { .. } | Next::Finished | Next::Spent(_)) => {
                panic!("the run did not fail: {other:?}")
            }
        }
    }

    pub(crate) fn redrive(&mut self, max_steps: Option<u64>) {
        self.apply(Event::Redriven { by: "ann".to_owned(), max_steps });
        let events = self.engine.reroute(&mut self.progress);
        self.record(events);
        self.settle();
    }

    /// The worker dies; the next one looks for uncertain effects.
    pub(crate) fn lose_worker(&mut self) {
        self.apply(Event::WorkerLost {
            worker: "w1".parse().unwrap(),
            epoch: 1,
            claimed_at_ms: 0,
            lost_at_ms: self.now_ms,
            evidence: "test".to_owned(),
        });
        self.recover();
    }

    pub(crate) fn recover(&mut self) {
        let events = self.engine.recover(&mut self.progress, self.now_ms);
        self.record(events);
    }

    /// The ids of the open questions.
    pub(crate) fn open(&self) -> Vec<InterruptId> {
        self.progress.open().map(|open| open.interrupt.clone()).collect()
    }

    /// The one open question.
    pub(crate) fn asked(&self) -> InterruptId {
        let open = self.open();
        assert_eq!(open.len(), 1, "{:?}", self.progress.open().collect::<Vec<_>>());
        open.into_iter().next().unwrap()
    }

    pub(crate) fn answer(&mut self, id: &InterruptId, value: Value) {
        self.try_answer(id, value).unwrap();
    }

    pub(crate) fn try_answer(
        &mut self,
        id: &InterruptId,
        value: Value,
    ) -> Result<(), holdpoint_graph::AnswerFault> {
        self.try_decide(id, Answer::new(value, "ann", self.now_ms))
    }

    /// An answer with all that belongs to it.
    pub(crate) fn try_decide(
        &mut self,
        id: &InterruptId,
        answer: Answer,
    ) -> Result<(), holdpoint_graph::AnswerFault> {
        let event = self.engine.answer(&mut self.progress, id, answer, "request-1")?;
        self.record([event]);
        self.settle();
        Ok(())
    }
}
