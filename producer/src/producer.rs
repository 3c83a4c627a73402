//! The handle: a store, a namespace, and how long a caller waits for them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use holdpoint_graph::{Namespace, RequestId, RunId, limits};
use holdpoint_storage::{
    GraphRecord, Random, RunHead, SharedClock, Store, StoreError, StoreResult, SystemClock,
};

use crate::ProducerError;

/// How long a caller waits for a store that does not answer, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the store's time and the published graphs are taken for fresh.
const FRESH: Duration = Duration::from_secs(1);

/// Brings work and answers to a store, and looks at what becomes of them. Cheap to clone.
///
/// A call that the store does not answer is repeated with the same request id until the patience
/// (5 s) is over. A future may be dropped; the call then may or may not have had its effect.
///
/// ```no_run
/// use std::sync::Arc;
/// use holdpoint_graph::Namespace;
/// use holdpoint_producer::{Producer, ProducerError, RunRequest, Until};
/// use holdpoint_storage::Store;
///
/// async fn ship(store: Arc<dyn Store>) -> Result<(), ProducerError> {
///     let producer = Producer::new(store);
///     let request = RunRequest::new("ship").input(serde_json::json!({ "order": 7 }));
///     let receipt = producer.enqueue(&request).await?;
///     let ended = producer.wait(&receipt.run, Until::Terminal, None).await?;
///     assert!(ended.is_some_and(|run| run.status.is_terminal()));
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    store: Arc<dyn Store>,
    namespace: Namespace,
    clock: SharedClock,
    patience: Duration,
    queue_depth_max: u64,
    seen: Arc<Mutex<Seen>>,
}

/// What was read from the store a moment ago, with when that was.
#[derive(Default)]
struct Seen {
    time: Option<(Instant, i64)>,
    graphs: Option<(Instant, Arc<[GraphRecord]>)>,
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("store", &self.inner.store.describe())
            .field("namespace", &self.inner.namespace)
            .field("patience", &self.inner.patience)
            .finish_non_exhaustive()
    }
}

impl Producer {
    /// A producer for one namespace of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let namespace = store.namespace().clone();
        let inner = Inner {
            store,
            namespace,
            clock: Arc::new(SystemClock),
            patience: PATIENCE,
            queue_depth_max: limits::QUEUE_DEPTH_MAX,
            seen: Arc::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits so long for a store that does not answer. Default: 5 s.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        self.changed_by(|inner| inner.patience = patience)
    }

    /// Measures durations with this clock. Default: the host's.
    #[must_use]
    pub fn with_clock(self, clock: SharedClock) -> Self {
        self.changed_by(|inner| inner.clock = clock)
    }

    /// Refuses runs for a queue in which so many wait. Default: 1,000,000.
    #[must_use]
    pub fn with_queue_depth_max(self, queue_depth_max: u64) -> Self {
        self.changed_by(|inner| inner.queue_depth_max = queue_depth_max)
    }

    fn changed_by(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.inner));
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.inner.namespace
    }

    pub(crate) fn queue_depth_max(&self) -> u64 {
        self.inner.queue_depth_max
    }

    pub(crate) fn monotonic(&self) -> Instant {
        self.inner.clock.monotonic()
    }

    /// The store's time in ms since 1970, at most a second of the host's monotonic time old.
    pub(crate) async fn now_ms(&self) -> Result<i64, ProducerError> {
        let now = self.monotonic();
        if let Some((at, store_ms)) = self.seen(|seen| seen.time)
            && now.saturating_duration_since(at) < FRESH
        {
            let passed = now.saturating_duration_since(at).as_millis();
            return Ok(store_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX)));
        }
        let store_ms = self.insist(None, || self.store().now_ms()).await?;
        self.seen(|seen| seen.time = Some((self.monotonic(), store_ms)));
        Ok(store_ms)
    }

    /// The published graphs. `is_fresh` asks the store in any case.
    pub(crate) async fn published(
        &self,
        is_fresh: bool,
    ) -> Result<Arc<[GraphRecord]>, ProducerError> {
        let now = self.monotonic();
        if let Some((at, graphs)) = self.seen(|seen| seen.graphs.clone())
            && !is_fresh
            && now.saturating_duration_since(at) < FRESH
        {
            return Ok(graphs);
        }
        let graphs: Arc<[GraphRecord]> = self.insist(None, || self.store().graphs()).await?.into();
        self.seen(|seen| seen.graphs = Some((now, Arc::clone(&graphs))));
        Ok(graphs)
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The head of a run that must exist.
    pub(crate) async fn head(&self, run: &RunId) -> Result<RunHead, ProducerError> {
        let head = self.insist(None, || self.store().head(run)).await?;
        head.ok_or_else(|| ProducerError::no_run(run))
    }

    /// Calls the store until it answers or the patience is over. A call that writes names its
    /// request: once one outcome is unknown, no later failure makes it known.
    pub(crate) async fn insist<T, F>(
        &self,
        request: Option<&RequestId>,
        call: impl Fn() -> F,
    ) -> Result<T, ProducerError>
    where
        F: Future<Output = StoreResult<T>>,
    {
        let mut tries = self.tries();
        let mut is_unknown = false;
        loop {
            let error = match self.attempt(request, &tries, call()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            is_unknown |= matches!(error, StoreError::UnknownOutcome { .. });
            if may_repeat(&error) && tries.again().await {
                continue;
            }
            return Err(match request {
                Some(request) if is_unknown => {
                    let (request, cause) = (request.clone(), cause_of(error));
                    ProducerError::UnknownOutcome { request, cause }
                }
                Some(_) | None => error.into(),
            });
        }
    }

    /// Calls the store once, for as long as the patience is not over.
    pub(crate) async fn attempt<T>(
        &self,
        request: Option<&RequestId>,
        tries: &Tries<'_>,
        call: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        let Ok(reply) = tokio::time::timeout(tries.left(), call).await else {
            let cause = format!("no answer within {} ms", self.inner.patience.as_millis());
            return Err(match request {
                Some(request) => StoreError::UnknownOutcome { request: request.clone(), cause },
                None => StoreError::Unavailable { cause },
            });
        };
        reply
    }

    /// The times that a call may be made within the patience.
    pub(crate) fn tries(&self) -> Tries<'_> {
        let since = self.monotonic();
        Tries { producer: self, since, began: since, pause: Duration::from_millis(20) }
    }
}

/// Whether to call again at once, within a caller's patience.
pub(crate) const fn may_repeat(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable { .. } | StoreError::UnknownOutcome { .. } => true,
        // A full store does not empty itself in seconds; the caller had better know.
        StoreError::Full { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Reset { .. }
        | StoreError::Refused(_)
        | _ => false,
    }
}

/// Why a call failed, without the words that its error puts around that.
pub(crate) fn cause_of(error: StoreError) -> String {
    match error {
        StoreError::Unavailable { cause }
        | StoreError::Full { cause }
        | StoreError::UnknownOutcome { cause, .. } => cause,
        StoreError::Corrupt { .. } | StoreError::Reset { .. } | StoreError::Refused(_) | _ => {
            error.to_string()
        }
    }
}

/// Repeats within the patience, with growing pauses.
pub(crate) struct Tries<'a> {
    producer: &'a Producer,
    since: Instant,
    /// When the newest try began.
    began: Instant,
    pause: Duration,
}

impl Tries<'_> {
    /// What is left of the patience; never nothing, so that a first call is made.
    fn left(&self) -> Duration {
        let passed = self.producer.monotonic().saturating_duration_since(self.since);
        self.producer.inner.patience.saturating_sub(passed).max(Duration::from_millis(100))
    }

    /// Whether the patience is over.
    pub(crate) fn is_over(&self) -> bool {
        let passed = self.producer.monotonic().saturating_duration_since(self.since);
        passed >= self.producer.inner.patience
    }

    /// Waits a moment. False: the patience is over, or another try that takes as long as the
    /// newest one would outlast it. Cut short it could only say that its outcome is unknown, and
    /// so hide what the store did say.
    pub(crate) async fn again(&mut self) -> bool {
        let now = self.producer.monotonic();
        let passed = now.saturating_duration_since(self.since);
        let newest = now.saturating_duration_since(self.began);
        if passed + self.pause + newest >= self.producer.inner.patience {
            return false;
        }
        tokio::time::sleep(self.pause.mul_f64(0.5 + Random.unit() / 2.0)).await;
        self.began = self.producer.monotonic();
        self.pause = (self.pause * 2).min(Duration::from_millis(500));
        true
    }
}
