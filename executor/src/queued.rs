//! The executor of claimed runs: what a worker calls, and what an in-process runner uses too.

mod ending;
mod start;

use std::{
    convert::Infallible,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use holdpoint_graph::{BoxFuture, CompiledGraph, Namespace, Reason, ReasonCode, RunId, RunPayload};
use holdpoint_storage::{ClaimedRun, RunHead, Store, StoreError};
use serde_json::Value;
use tokio::sync::mpsc;

use self::{
    ending::{Ending, undecodable},
    start::complete,
};

use crate::{
    Control, EventSink, ExecutorConfig, GraphResolver, ResolveError, Tracer,
    journal::load,
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
        let tracer = self.listeners.tracer.as_ref();
        let span = tracer.map(|tracer| {
            let head = &claimed.run.head;
            let session = head.session.as_ref().map_or(head.run.as_str(), |s| s.as_str());
            tracer.start(session, &format!("graph:{}", head.graph), SpanKind::Graph)
        });
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
        let head = &claimed.run.head;
        if let Some(end) = self.must_end(head, claimed.time.now_ms()) {
            return self.end_without_graph(&claimed, end).await;
        }
        if let Some(damage) = &claimed.run.damage {
            let end = undecodable(damage.clone());
            return self.end_without_graph(&claimed, end).await;
        }
        let read = RunPayload::decode(&claimed.run.payload).map_err(StoreError::from);
        let records =
            load(&self.namespace, &head.run, claimed.run.snapshot.as_deref(), &claimed.run.journal);
        let (payload, loaded) = match (read, records.and_then(|loaded| complete(head, loaded))) {
            (Ok(payload), Ok(loaded)) => (payload, loaded),
            (Err(fault), _) => return self.unreadable(&claimed, "payload: ", &fault).await,
            (_, Err(fault)) => return self.unreadable(&claimed, "", &fault).await,
        };
        match self.resolve(head) {
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
