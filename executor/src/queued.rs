//! The executor of claimed runs: what a worker calls, and what an in-process runner uses too.

use std::{
    convert::Infallible,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use holdpoint_graph::{
    Beginning, BoxFuture, CompiledGraph, End, Engine, Event, Namespace, OnStale, Progress, Reason,
    ReasonCode, RunId, RunPayload, State,
};
use holdpoint_storage::{CancelWish, Chain, ClaimedRun, Disposition, RunHead, Store, StoreError};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    Control, EventSink, ExecutorConfig, GraphResolver, ResolveError, Tracer,
    config::ms,
    journal::{Journal, Loaded, Opening, Written, load},
    run_loop::{Facts, RunLoop},
    sink::{Listeners, SpanKind},
    time::StoreTime,
};

/// Partial results that wait to be sent; more are dropped.
const PARTIALS_MAX: usize = 1_024;
/// How soon a run is offered again that this worker's resolver has no graph for.
const UNRESOLVED_WAIT_MS: i64 = 5_000;

/// A claimed run, with the handle through which it is told things and the store's time.
#[derive(Debug)]
pub struct Claimed {
    /// The run.
    pub run: ClaimedRun,
    /// The handle.
    pub control: Control,
    /// The store's time since the claim.
    pub time: Arc<StoreTime>,
}

/// What became of a claimed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ended well.
    Completed,
    /// It failed.
    Failed(ReasonCode),
    /// It was cancelled.
    Cancelled,
    /// It waits for an answer.
    Parked,
    /// It waits for a time.
    Rescheduled {
        /// Until when, in ms since 1970.
        until_ms: i64,
    },
    /// It was handed back, claimable now.
    Released,
    /// The lease is somebody else's by now; nothing was written.
    Fenced,
    /// The store took no commit while the lease lasted; the next owner goes on.
    GivenUp,
}

/// A partial result on its way to the store.
#[derive(Debug)]
pub(crate) struct PartialOut {
    pub(crate) run: RunId,
    pub(crate) after: u64,
    pub(crate) body: Value,
}

/// Executes claimed runs. Cheap to clone; one serves a whole worker.
#[derive(Clone)]
pub struct QueuedExecutor {
    store: Arc<dyn Store>,
    namespace: Namespace,
    resolver: Arc<dyn GraphResolver>,
    config: ExecutorConfig,
    listeners: Listeners,
    partials: mpsc::Sender<PartialOut>,
}

impl fmt::Debug for QueuedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedExecutor")
            .field("store", &self.store.describe())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl QueuedExecutor {
    /// An executor over a store that finds graphs through `resolver`.
    ///
    /// # Panics
    /// Outside of a tokio runtime: it sends partial results in the background.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, resolver: Arc<dyn GraphResolver>) -> Self {
        let namespace = store.namespace().clone();
        let (partials, waiting) = mpsc::channel(PARTIALS_MAX);
        tokio::spawn(send_partials(Arc::clone(&store), waiting));
        let (config, listeners) = (ExecutorConfig::default(), Listeners::default());
        Self { store, namespace, resolver, config, listeners, partials }
    }

    /// With these settings.
    #[must_use]
    pub const fn with_config(mut self, config: ExecutorConfig) -> Self {
        self.config = config;
        self
    }

    /// With a step limit for runs that name none.
    #[must_use]
    pub const fn with_max_steps(mut self, max_steps: u64) -> Self {
        self.config.max_steps = max_steps;
        self
    }

    /// With a time limit for nodes that have none.
    #[must_use]
    pub const fn with_node_timeout(mut self, timeout: Duration) -> Self {
        self.config.node_timeout = timeout;
        self
    }

    /// With a tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.listeners.tracer = Some(tracer);
        self
    }

    /// With one sink more.
    #[must_use]
    pub fn with_broker(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.listeners.sinks.push(sink);
        self
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &ExecutorConfig {
        &self.config
    }

    /// The executor as a tower service, for a worker.
    #[must_use]
    pub fn executor(&self) -> Self {
        self.clone()
    }

    /// Executes a claimed run until it ends, parks, is put off, handed back or lost.
    ///
    /// Dropping the future drops the nodes in flight; what was committed stands, and the run is
    /// recovered when its lease is over.
    pub async fn execute(&self, claimed: Claimed) -> Outcome {
        let name = format!("graph:{}", claimed.run.head.graph);
        let session = claimed.run.head.session.as_ref().map(|s| s.as_str().to_owned());
        let session = session.unwrap_or_else(|| claimed.run.head.run.to_string());
        let tracer = self.listeners.tracer.as_ref();
        let span = tracer.map(|tracer| tracer.start(&session, &name, SpanKind::Graph));
        let run = claimed.run.head.run.clone();
        let outcome = self.execute_inner(claimed).await;
        tracing::debug!(%run, ?outcome, "claim ended");
        if let (Some(tracer), Some(span)) = (tracer, span) {
            let error = matches!(outcome, Outcome::Failed(_)).then_some("failed");
            tracer.end(span, error);
        }
        outcome
    }

    async fn execute_inner(&self, claimed: Claimed) -> Outcome {
        let head = claimed.run.head.clone();
        if let Some(end) = self.must_end(&head, claimed.time.now_ms()) {
            return self.end_without_graph(&claimed, end).await;
        }
        let read = RunPayload::decode(&claimed.run.payload).map_err(|fault| fault.to_string());
        let records =
            load(&self.namespace, &head.run, claimed.run.snapshot.as_deref(), &claimed.run.journal);
        let (payload, loaded) = match (read, records.and_then(|loaded| complete(&head, loaded))) {
            (Ok(payload), Ok(loaded)) => (payload, loaded),
            (Err(why), _) => return self.undecodable(&claimed, format!("payload: {why}")).await,
            (_, Err(fault)) => return self.undecodable(&claimed, fault.to_string()).await,
        };
        match self.resolve(&head) {
            Ok(graph) => self.drive(claimed, payload, loaded, graph).await,
            Err(ResolveError::Failed(message)) => {
                let code = ReasonCode::IncompatibleGraph;
                let reason = Reason { code, message, node: None };
                self.end_without_graph(&claimed, Ending::Failed(reason)).await
            }
            Err(error) => self.put_off(&claimed, &error).await,
        }
    }

    /// Ends a run that must end and needs no graph for it: the closing claims of a tick.
    pub async fn close(&self, claimed: Claimed) -> Outcome {
        match self.must_end(&claimed.run.head, claimed.time.now_ms()) {
            Some(end) => self.end_without_graph(&claimed, end).await,
            None => match self.store.release(&claimed.run.lease).await {
                Ok(true) => Outcome::Released,
                Ok(false) => Outcome::Fenced,
                Err(_) => Outcome::GivenUp,
            },
        }
    }

    /// Whether the head alone says that the run must end.
    fn must_end(&self, head: &RunHead, now_ms: i64) -> Option<Ending> {
        if let Some(wish) = head.cancel {
            return Some(Ending::Cancelled(match wish {
                CancelWish::Asked => "a request".to_owned(),
                CancelWish::Interrupted | CancelWish::RolledBack => {
                    "a newer run of the session".to_owned()
                }
            }));
        }
        let failed = |code, message| Some(Ending::Failed(Reason { code, message, node: None }));
        let has_passed = |at: Option<i64>| at.is_some_and(|at| at <= now_ms);
        if head.seq == 0 && has_passed(head.expires_at_ms) {
            return failed(ReasonCode::Expired, "the run had not started in time".to_owned());
        }
        if has_passed(head.deadline_ms) {
            return failed(ReasonCode::Expired, "the run's deadline has passed".to_owned());
        }
        let lost_in_row = head.lost_in_row.saturating_sub(1);
        let lost_in_life = head.lost_in_life.saturating_sub(1);
        if lost_in_row >= self.config.max_crashes || lost_in_life >= self.config.max_crashes_in_life
        {
            let seen =
                head.losses.iter().map(|loss| format!("{} ({})", loss.worker, loss.evidence));
            let seen: Vec<String> = seen.collect();
            let message = format!(
                "{lost_in_row} workers in a row were lost with the run, {lost_in_life} over its \
                 life: {}",
                seen.join(", ")
            );
            return failed(ReasonCode::CrashLoop, message);
        }
        None
    }

    fn resolve(&self, head: &RunHead) -> Result<CompiledGraph, ResolveError> {
        let resolve = || self.resolver.resolve(&head.graph, head.fingerprint.as_ref());
        let found = catch_unwind(AssertUnwindSafe(resolve)).unwrap_or_else(|panic| {
            let text = holdpoint_graph::panic_text(&*panic);
            Err(ResolveError::Failed(format!("the resolver panicked: {text}")))
        })?;
        let is_asked = found.id() == &head.graph
            && head.fingerprint.as_ref().is_none_or(|asked| asked == found.fingerprint());
        if is_asked {
            return Ok(found);
        }
        Err(ResolveError::Failed(format!(
            "E_GRAPH_MISMATCH: asked for {} {}, the resolver gave {} {}",
            head.graph,
            head.fingerprint.as_ref().map_or("(any)", |f| f.as_str()),
            found.id(),
            found.fingerprint()
        )))
    }

    async fn drive(
        &self,
        claimed: Claimed,
        payload: RunPayload,
        loaded: Loaded,
        graph: CompiledGraph,
    ) -> Outcome {
        let Claimed { run: ClaimedRun { head, inbox, session_last, lease, .. }, control, time } =
            claimed;
        let engine = Engine::new(graph, head.run.clone());
        let Loaded { chain, mut progress, snapshot_bytes, tail_bytes, moved_at_ms } = loaded;
        let opening = Opening {
            store: Arc::clone(&self.store),
            listeners: self.listeners.clone(),
            config: self.config,
            time: Arc::clone(&time),
            control: control.clone(),
            lease: lease.clone(),
        };
        let mut journal = Journal::new(opening, chain, tail_bytes, snapshot_bytes, &progress);
        let now_ms = time.now_ms();
        let mut events = Vec::new();
        if !progress.is_begun() {
            let base = match self.base(session_last.as_ref(), &payload).await {
                Ok(base) => base,
                Err(error) => {
                    tracing::error!(run = %head.run, %error, "cannot read the session's state");
                    return Outcome::GivenUp;
                }
            };
            journal.pin(engine.graph().fingerprint());
            match begin(&engine, &payload, &base, self.config.max_steps) {
                Ok(started) => events.push(started),
                Err(reason) => {
                    let claimed = (journal, progress);
                    return end_with(claimed, Ending::Failed(reason)).await;
                }
            }
        }
        events.extend(claim_events(&head, &lease));
        for event in events {
            progress.apply(&event).expect("a claim follows anything");
            journal.push(event);
        }
        for event in engine.recover(&mut progress, now_ms) {
            journal.push(event);
        }
        for event in engine.reroute(&mut progress) {
            journal.push(event);
        }
        let stale_after_ms = payload.stale_after_ms.unwrap_or(ms(self.config.stale_after));
        let moved_at_ms = moved_at_ms.max(progress.fresh_at_ms());
        let idle_ms = moved_at_ms.map_or(0, |at| now_ms.saturating_sub(at));
        if idle_ms > stale_after_ms {
            match payload.on_stale {
                OnStale::Resume => {}
                OnStale::Cancel => {
                    let end = Ending::Cancelled("its plan is stale".to_owned());
                    return end_with((journal, progress), end).await;
                }
                OnStale::Ask => {
                    let event = engine.stale(&progress, idle_ms, now_ms);
                    progress.apply(&event).expect("a question may open at any time");
                    journal.push(event);
                }
            }
        }
        let facts = Facts {
            run: head.run,
            session: head.session,
            epoch: lease.pair.epoch,
            deadline_ms: head.deadline_ms,
            config: self.config,
            control,
            time,
            listeners: self.listeners.clone(),
            partials: self.partials.clone(),
        };
        RunLoop::new(engine, progress, journal, facts, inbox).run().await
    }

    /// The state that the run starts from: what is remembered of the session's last.
    async fn base(&self, last: Option<&RunId>, payload: &RunPayload) -> Result<State, StoreError> {
        let Some(last) = last else { return Ok(State::new()) };
        let Some(part) = self.store.checkpoint(last).await? else { return Ok(State::new()) };
        let loaded = load(&self.namespace, last, part.snapshot.as_deref(), &part.records)?;
        Ok(payload.memory.of(loaded.progress.state().clone()))
    }

    async fn undecodable(&self, claimed: &Claimed, why: String) -> Outcome {
        let reason = Reason { code: ReasonCode::Undecodable, message: why, node: None };
        self.end_without_graph(claimed, Ending::Failed(reason)).await
    }

    /// No graph for it here: the run is offered again a little later.
    async fn put_off(&self, claimed: &Claimed, error: &ResolveError) -> Outcome {
        tracing::warn!(run = %claimed.run.head.run, %error, "cannot execute the run");
        let until_ms = claimed.time.now_ms().saturating_add(UNRESOLVED_WAIT_MS);
        let Some((mut journal, progress)) = self.pen(claimed) else { return Outcome::GivenUp };
        journal.push(Event::RunRescheduled { until_ms });
        match journal.commit(&progress, Disposition::Reschedule { until_ms }).await {
            Written::Done { .. } => Outcome::Rescheduled { until_ms },
            Written::Cancelled => self.end_now(claimed, "a request").await,
            Written::Fenced => Outcome::Fenced,
            Written::GivenUp(_) => Outcome::GivenUp,
        }
    }

    async fn end_now(&self, claimed: &Claimed, by: &str) -> Outcome {
        self.end_without_graph(claimed, Ending::Cancelled(by.to_owned())).await
    }

    /// A pen that goes on behind the head, for writes that need no progress.
    fn pen(&self, claimed: &Claimed) -> Option<(Journal, Progress)> {
        let head = &claimed.run.head;
        let chain = Chain::at(&self.namespace, &head.run, head.seq, &head.hash).ok()?;
        let opening = Opening {
            store: Arc::clone(&self.store),
            listeners: self.listeners.clone(),
            config: self.config,
            time: Arc::clone(&claimed.time),
            control: claimed.control.clone(),
            lease: claimed.run.lease.clone(),
        };
        let progress = Progress::new();
        Some((Journal::new(opening, chain, 0, 0, &progress), progress))
    }

    async fn end_without_graph(&self, claimed: &Claimed, ending: Ending) -> Outcome {
        let Some((mut journal, progress)) = self.pen(claimed) else { return Outcome::GivenUp };
        for event in claim_events(&claimed.run.head, &claimed.run.lease) {
            journal.push(event);
        }
        end_with((journal, progress), ending).await
    }
}

/// How a run ends that has no way to go on.
enum Ending {
    Failed(Reason),
    Cancelled(String),
}

async fn end_with((mut journal, progress): (Journal, Progress), ending: Ending) -> Outcome {
    let (event, end, outcome) = match ending {
        Ending::Failed(reason) => {
            let code = reason.code;
            (Event::RunFailed { reason }, End::Failed(code), Outcome::Failed(code))
        }
        Ending::Cancelled(by) => (Event::RunCancelled { by }, End::Cancelled, Outcome::Cancelled),
    };
    journal.push(event);
    match journal.commit(&progress, Disposition::Finish { end }).await {
        Written::Done { .. } => outcome,
        Written::Cancelled => {
            journal.take_back_last();
            let end = Ending::Cancelled("a request".to_owned());
            Box::pin(end_with((journal, progress), end)).await
        }
        Written::Fenced => Outcome::Fenced,
        Written::GivenUp(_) => Outcome::GivenUp,
    }
}

/// The journal must be whole: as long as the head says, and with the hash the head has.
fn complete(head: &RunHead, loaded: Loaded) -> Result<Loaded, StoreError> {
    if loaded.chain.seq() == head.seq && loaded.chain.hash() == head.hash {
        return Ok(loaded);
    }
    Err(StoreError::Corrupt {
        what: format!("run {}", head.run),
        why: format!(
            "its journal has {} events and another end than its head, which counts {}",
            loaded.chain.seq(),
            head.seq
        ),
    })
}

fn begin(
    engine: &Engine,
    payload: &RunPayload,
    base: &State,
    max_steps: u64,
) -> Result<Event, Reason> {
    let max_steps = payload.max_steps.unwrap_or(max_steps);
    if let Some(start) = &payload.checkpoint {
        let begin = Beginning::Checkpoint {
            origin: start.origin.clone(),
            progress: start.progress.clone(),
            patches: start.patches.clone(),
        };
        return Ok(engine.started(begin, max_steps));
    }
    let start = || engine.start(base, payload.initial.clone(), max_steps);
    catch_unwind(AssertUnwindSafe(start)).map_err(|panic| Reason {
        code: ReasonCode::NodeError,
        message: format!("a reducer panicked: {}", holdpoint_graph::panic_text(&*panic)),
        node: None,
    })
}

/// What the journal does not have yet of who held the run.
fn claim_events(head: &RunHead, lease: &holdpoint_storage::Lease) -> Vec<Event> {
    let lost = head.losses.iter().map(|loss| Event::WorkerLost {
        worker: loss.worker.clone(),
        epoch: loss.epoch,
        claimed_at_ms: loss.claimed_at_ms,
        lost_at_ms: loss.lost_at_ms,
        evidence: loss.evidence.clone(),
    });
    let claimed = Event::Claimed {
        worker: lease.worker.clone(),
        epoch: lease.pair.epoch,
        at_ms: head.updated_at_ms,
    };
    lost.chain([claimed]).collect()
}

async fn send_partials(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<PartialOut>) {
    while let Some(PartialOut { run, after, body }) = waiting.recv().await {
        let body = serde_json::to_vec(&body).expect("a JSON value always has a text");
        if let Err(error) = store.partial(&run, after, body).await {
            tracing::debug!(%run, %error, "a partial result was dropped");
        }
    }
}

impl tower::Service<Claimed> for QueuedExecutor {
    type Response = Outcome;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Outcome, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, claimed: Claimed) -> Self::Future {
        let executor = self.clone();
        Box::pin(async move { Ok(executor.execute(claimed).await) })
    }
}
