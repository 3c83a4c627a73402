//! A store with a worker or two, graphs that write down what they did, and short ways to say it.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use holdpoint_graph::{
    CompiledGraph, GraphId, Namespace, NodeContext, NodeError, QueueId, RunId, RunPayload,
    RunStatus, State, StateGraph, Update, WorkerId,
};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, ChainHash, Enqueued, IfBusy, NewRun, Random, RunHead,
    Store, When, meaning_hash,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::{Proxy, RedisServer, Scratch, until_async};
use holdpoint_worker::{Health, Shutdown, StoreFactory, Worker, WorkerConfig, WorkerEnd};
use tokio::task::JoinHandle;

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A store of the test's own.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) upkeep_store: StoreFactory,
    pub(crate) redis: Option<RedisServer>,
    _scratch: Option<Scratch>,
}

/// Plays `scenario` on every kind of store.
pub(crate) async fn on_all(scenario: impl AsyncFn(&World)) {
    scenario(&World::sqlite().await).await;
    scenario(&World::redis().await).await;
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let scratch = Scratch::new();
        let location = Location::File(scratch.file("holdpoint.db"));
        let config = SqliteConfig::new(location, Namespace::new("test").unwrap());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(config).await.unwrap());
        let shared = Arc::clone(&store);
        let upkeep_store: StoreFactory = Arc::new(move || {
            let shared = Arc::clone(&shared);
            Box::pin(async move { Ok(shared) })
        });
        Self { store, upkeep_store, redis: None, _scratch: Some(scratch) }
    }

    pub(crate) async fn redis() -> Self {
        let server = RedisServer::start();
        let url = server.url();
        Self::of_redis(server, url).await
    }

    /// On a Redis behind a relay.
    pub(crate) async fn relayed() -> (Self, Proxy) {
        let server = RedisServer::start();
        let proxy = Proxy::to_redis(&server);
        (Self::of_redis(server, proxy.url()).await, proxy)
    }

    async fn of_redis(server: RedisServer, url: String) -> Self {
        let config = RedisConfig {
            check_every: Duration::from_secs(1),
            ..RedisConfig::new(url, Namespace::new("test").unwrap())
        };
        let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config.clone()).await.unwrap());
        let upkeep_store: StoreFactory = Arc::new(move || {
            let config = RedisConfig { client: "upkeep".to_owned(), ..config.clone() };
            Box::pin(async move {
                let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config).await?);
                Ok(store)
            })
        });
        Self { store, upkeep_store, redis: Some(server), _scratch: None }
    }

    /// The same store, past the relay.
    pub(crate) async fn direct(&self) -> Arc<dyn Store> {
        let server = self.redis.as_ref().unwrap();
        let config = RedisConfig::new(server.url(), Namespace::new("test").unwrap());
        Arc::new(RedisStore::connect(config).await.unwrap())
    }

    /// Starts a worker.
    pub(crate) fn start(&self, graphs: &[&CompiledGraph], config: WorkerConfig) -> Started {
        Started::of(self.worker(graphs, config))
    }

    pub(crate) fn worker(&self, graphs: &[&CompiledGraph], config: WorkerConfig) -> Worker {
        let graphs = graphs.iter().map(|graph| (*graph).clone()).collect();
        Worker::new(Arc::clone(&self.store), graphs, config)
            .unwrap()
            .with_upkeep_store(Arc::clone(&self.upkeep_store))
    }

    pub(crate) async fn enqueue(&self, graph: &str, run: &str) -> RunId {
        self.enqueue_with(graph, run, |_| {}).await
    }

    pub(crate) async fn enqueue_with(
        &self,
        graph: &str,
        run: &str,
        change: impl FnOnce(&mut NewRun),
    ) -> RunId {
        let mut new = new_run(graph, run);
        change(&mut new);
        let reply = self.store.enqueue(&[new], false).await.unwrap();
        assert!(matches!(reply.items[..], [Enqueued::Created { .. }]), "{reply:?}");
        RunId::new(run).unwrap()
    }

    /// Enqueues a run over another way to the store.
    pub(crate) async fn enqueue_at(&self, store: &Arc<dyn Store>, graph: &str, run: &str) -> RunId {
        let reply = store.enqueue(&[new_run(graph, run)], false).await.unwrap();
        assert!(matches!(reply.items[..], [Enqueued::Created { .. }]), "{reply:?}");
        RunId::new(run).unwrap()
    }

    /// Enqueues `count` runs called `r0`, `r1` …
    pub(crate) async fn enqueue_many(&self, graph: &str, count: usize) -> Vec<RunId> {
        let mut runs = Vec::new();
        for n in 0..count {
            runs.push(self.enqueue(graph, &format!("r{n}")).await);
        }
        runs
    }

    pub(crate) async fn head(&self, run: &RunId) -> RunHead {
        self.store.head(run).await.unwrap().unwrap()
    }

    /// Waits until the run has this state, and answers its head.
    pub(crate) async fn until(&self, run: &RunId, status: RunStatus) -> RunHead {
        until_async(&format!("{run} to be {}", status.as_str()), LONG, async || {
            let head = self.store.head(run).await.ok()??;
            let is_final = head.status().is_terminal();
            assert!(!is_final || head.status() == status, "{head:?}");
            (head.status() == status).then_some(head)
        })
        .await
    }

    pub(crate) async fn until_all(&self, runs: &[RunId], status: RunStatus) {
        for run in runs {
            self.until(run, status).await;
        }
    }

    pub(crate) async fn cancel(&self, run: &RunId) -> AppendReply {
        let head = self.head(run).await;
        let request = AppendRequest {
            run: run.clone(),
            request: Random.request_id(),
            from: head.seq,
            previous: head.hash,
            record: Vec::new(),
            hash: ChainHash::default(),
        };
        self.store.append(&request, &AppendKind::Cancel { rollback: false }).await.unwrap()
    }
}

pub(crate) fn new_run(graph: &str, run: &str) -> NewRun {
    let payload = RunPayload::new(State::new());
    NewRun {
        run: RunId::new(run).unwrap(),
        request: Random.request_id(),
        graph: GraphId::new(graph).unwrap(),
        fingerprint: None,
        queue: QueueId::new("default").unwrap(),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: payload.encode(),
        payload_hash: meaning_hash(&serde_json::json!(run)),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: Vec::new(),
        queue_depth_max: 1_000_000,
    }
}

/// A worker that runs.
pub(crate) struct Started {
    pub(crate) id: WorkerId,
    pub(crate) health: Health,
    pub(crate) shutdown: Shutdown,
    pub(crate) task: JoinHandle<WorkerEnd>,
}

impl Started {
    pub(crate) fn of(worker: Worker) -> Self {
        let (id, health, shutdown) = (worker.id().clone(), worker.health(), Shutdown::new());
        let task = tokio::spawn(worker.run(shutdown.clone()));
        Self { id, health, shutdown, task }
    }

    /// Drains it and waits for its end.
    pub(crate) async fn drain(self) -> WorkerEnd {
        self.shutdown.drain();
        self.end().await
    }

    /// Waits for its end.
    pub(crate) async fn end(self) -> WorkerEnd {
        tokio::time::timeout(LONG, self.task).await.unwrap().unwrap()
    }

    /// Ends it as `kill -9` would: nothing is said to the store.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Settings for tests: a lease that a busy machine keeps, and few slots.
pub(crate) fn config(lease_ms: u64, concurrency: usize) -> WorkerConfig {
    let lease = Duration::from_millis(lease_ms);
    WorkerConfig { concurrency, ..WorkerConfig::with_lease(lease) }
}

/// What nodes did, in order: `run/node` when one starts, `run/node.` when it ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|said| *said == what).count()
    }

    /// Waits until it was said so often.
    pub(crate) async fn until(&self, what: &str, count: usize) {
        let look = async || (self.count(what) >= count).then_some(());
        until_async(&format!("{what} to be said {count} times"), LONG, look).await;
    }

    /// A graph with the nodes a → b → …, each of which takes as long as `work` says.
    pub(crate) fn line<F, Fut>(&self, id: &str, nodes: &[&str], work: F) -> CompiledGraph
    where
        F: Fn(NodeContext) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<(), NodeError>> + Send + 'static,
    {
        let mut graph = StateGraph::new(id).set_entry_point(*nodes.first().unwrap());
        for node in nodes {
            let (log, work) = (self.clone(), work.clone());
            graph = graph.add_node(*node, move |ctx: NodeContext, _: State| {
                let (log, work) = (log.clone(), work.clone());
                async move {
                    let name = format!("{}/{}", ctx.run(), ctx.node());
                    log.say(name.clone());
                    work(ctx).await?;
                    log.say(format!("{name}."));
                    Ok::<_, NodeError>(Update::new())
                }
            });
        }
        for pair in nodes.windows(2) {
            graph = graph.add_edge(pair[0], pair[1]);
        }
        graph.set_finish_point(*nodes.last().unwrap()).compile().unwrap()
    }

    /// A line whose nodes take no time.
    pub(crate) fn quick(&self, id: &str, nodes: &[&str]) -> CompiledGraph {
        self.line(id, nodes, |_| async { Ok(()) })
    }

    /// a → slow → c, where `slow` takes this time.
    pub(crate) fn slow(&self, id: &str, time: Duration) -> CompiledGraph {
        self.line(id, &["a", "slow", "c"], move |ctx| async move {
            if ctx.node() == "slow" {
                tokio::time::sleep(time).await;
            }
            Ok(())
        })
    }
}
