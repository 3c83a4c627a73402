//! The worker: puts its parts together, and ends them in order.
//!
//! ```text
//! claim loop ──runs──▶ apalis ──▶ layers ──▶ executor
//!     │ leases                                  ▲ told: cancel, lost, answers, drain
//!     ▼                                         │
//! upkeep thread: lease keeper ──────────────────┘   ticks, signs of life, pruning
//! ```
//! Order of the end: the claim loop; the runs that were not started, and those that were; the
//! farewell; the renewals.

use std::{collections::BTreeSet, fmt, sync::Arc};

use holdpoint_executor::{Claimed, ExecutorConfig, GraphSet, Outcome, QueuedExecutor};
use holdpoint_graph::{CompiledGraph, Refusal, WorkerId};
use holdpoint_storage::{GraphRecord, Lane, Random, SharedClock, Store, SystemClock, WorkerRecord};

use crate::{
    Health, Shutdown, StoreFactory, WorkerConfig,
    config::ms,
    job::{Handler, LayerError},
    layer::{Execute, handler},
    running::{Plan, Running},
};

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEnd {
    /// It was told to, and all its runs ended or were handed back.
    Drained,
    /// It was told to, and some runs neither ended nor took notice; their leases were handed
    /// back for them. What still runs must end with the process.
    Aborted {
        /// How many.
        left: usize,
    },
    /// There was nothing left to do.
    Idle,
    /// It broke.
    Failed(String),
}

/// A call of the store without an answer is a trouble after this part of a poll interval. A claim
/// is made at most 1.25 intervals after the last, so that a worker that cannot claim says so
/// within two.
const LATE: f64 = 0.6;

/// A layer around the executor, applied when the worker runs.
type Wrap = Box<dyn FnOnce(QueuedExecutor) -> Handler + Send>;

/// A worker: claims runs of its graphs and executes them until it is told to end.
pub struct Worker {
    store: Arc<dyn Store>,
    upkeep_store: StoreFactory,
    graphs: Vec<CompiledGraph>,
    config: WorkerConfig,
    id: WorkerId,
    executor: Option<QueuedExecutor>,
    wrap: Wrap,
    clock: SharedClock,
    health: Health,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("id", &self.id)
            .field("store", &self.store.describe())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker for these graphs; of several versions of one graph the last is the newest.
    ///
    /// # Errors
    /// `E_RANGE` or `E_CONFIG_TIMING`, see [`WorkerConfig::check`].
    pub fn new(
        store: Arc<dyn Store>,
        graphs: Vec<CompiledGraph>,
        config: WorkerConfig,
    ) -> Result<Self, Refusal> {
        config.check()?;
        let clock: SharedClock = Arc::new(SystemClock);
        let shared = Arc::clone(&store);
        let upkeep_store: StoreFactory = Arc::new(move || {
            let shared = Arc::clone(&shared);
            Box::pin(async move { Ok(shared) })
        });
        Ok(Self {
            store,
            upkeep_store,
            graphs,
            health: Health::new(Arc::clone(&clock), config.poll.mul_f64(LATE)),
            config,
            id: Random.worker_id(&host(), std::process::id()),
            executor: None,
            wrap: Box::new(|executor| handler(executor)),
            clock,
        })
    }

    /// With another clock. Only durations and local deadlines depend on it, never a lease or a
    /// timer of the store.
    #[must_use]
    pub fn with_clock(mut self, clock: SharedClock) -> Self {
        self.health = Health::new(Arc::clone(&clock), self.config.poll.mul_f64(LATE));
        self.clock = clock;
        self
    }

    /// With a store of its own for renewals and upkeep: opened on their thread, so that nothing
    /// that keeps the worker's runtime busy delays them. Needed for stores with connections;
    /// without it the worker's store is shared.
    #[must_use]
    pub fn with_upkeep_store(mut self, open: StoreFactory) -> Self {
        self.upkeep_store = open;
        self
    }

    /// With this id, which no other process, living or dead, may have had.
    #[must_use]
    pub fn with_id(mut self, id: WorkerId) -> Self {
        self.id = id;
        self
    }

    /// With an executor of its own settings and listeners; its lease and margin must be the
    /// worker's. Without it: one with the defaults over the worker's store and graphs.
    #[must_use]
    pub fn with_executor(mut self, executor: QueuedExecutor) -> Self {
        self.executor = Some(executor);
        self
    }

    /// With a tower layer around the executor; a later one is around the earlier ones. A layer
    /// sees one claim of a run as one call. A run whose call it ends with an error is handed
    /// back.
    #[must_use]
    pub fn with_layer<L>(mut self, layer: L) -> Self
    where
        L: tower::Layer<Execute> + Send + 'static,
        L::Service: tower::Service<Claimed, Response = Outcome> + Clone + Send + Sync + 'static,
        <L::Service as tower::Service<Claimed>>::Error: Into<LayerError>,
        <L::Service as tower::Service<Claimed>>::Future: Send,
    {
        let inner = self.wrap;
        self.wrap = Box::new(move |executor| handler(layer.layer(Execute(inner(executor)))));
        self
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &WorkerId {
        &self.id
    }

    /// The worker's health, to be asked while it runs.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// The settings of an executor that goes with these of a worker.
    #[must_use]
    pub fn executor_config(config: &WorkerConfig) -> ExecutorConfig {
        ExecutorConfig {
            lease: config.lease,
            margin: config.margin,
            max_crashes: config.max_crashes,
            ..ExecutorConfig::default()
        }
    }

    /// The lanes it can serve.
    fn lanes(&self) -> Vec<Lane> {
        let mut lanes = BTreeSet::new();
        for queue in &self.config.queues {
            for graph in &self.graphs {
                let fingerprint = graph.fingerprint().clone();
                for fingerprint in [None, Some(fingerprint)] {
                    let (queue, graph) = (queue.clone(), graph.id().clone());
                    lanes.insert(Lane { queue, graph, fingerprint });
                }
            }
        }
        lanes.into_iter().collect()
    }

    fn record(&self) -> WorkerRecord {
        let graphs = self.graphs.iter();
        WorkerRecord {
            worker: self.id.clone(),
            host: host(),
            pid: std::process::id(),
            since_ms: 0,
            beat_at_ms: 0,
            is_draining: false,
            graphs: graphs.map(|g| (g.id().clone(), g.fingerprint().clone())).collect(),
            queues: self.config.queues.clone(),
            concurrency: self.config.concurrency,
            lost_after_ms: ms(self.config.lost_after()),
            trouble: None,
            runs: Vec::new(),
        }
    }

    fn graph_records(&self) -> Vec<GraphRecord> {
        let records = self.graphs.iter().map(|graph| GraphRecord {
            graph: graph.id().clone(),
            fingerprint: graph.fingerprint().clone(),
            drawing: graph.to_json().to_string(),
            published_at_ms: 0,
        });
        records.collect()
    }

    fn default_executor(&self) -> QueuedExecutor {
        let mut set = GraphSet::new();
        self.graphs.iter().cloned().for_each(|graph| set.add(graph));
        let store = Arc::clone(&self.store);
        QueuedExecutor::new(store, Arc::new(set)).with_config(Self::executor_config(&self.config))
    }

    /// Works until `shutdown` says to end, or until there is nothing left to do when the
    /// settings ask for that.
    ///
    /// Dropping the future ends all at once: runs in flight are dropped, and recovered when
    /// their leases are over.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn run(mut self, shutdown: Shutdown) -> WorkerEnd {
        let executor = self.executor.take().unwrap_or_else(|| self.default_executor());
        let lease = (executor.config().lease, executor.config().margin);
        if lease != (self.config.lease, self.config.margin) {
            return WorkerEnd::Failed(format!(
                "the executor's lease and margin are {lease:?}, the worker's are {:?}",
                (self.config.lease, self.config.margin)
            ));
        }
        let wrap = std::mem::replace(&mut self.wrap, Box::new(handler::<QueuedExecutor>));
        let handler = wrap(executor.clone());
        let plan = Plan {
            lanes: self.lanes(),
            record: self.record(),
            graphs: self.graph_records(),
            store: self.store,
            upkeep_store: self.upkeep_store,
            config: self.config,
            clock: self.clock,
            health: self.health,
            executor,
            handler,
        };
        match Running::start(plan) {
            Ok(running) => Box::pin(running.run(shutdown)).await,
            Err(error) => WorkerEnd::Failed(format!("cannot start the upkeep thread: {error}")),
        }
    }
}

/// The host's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
