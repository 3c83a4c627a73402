//! The bench of these tests: a real store, a log of what ran, and workers that live by the claim.

use std::sync::{Arc, Mutex};

use holdpoint_executor::{
    Claimed, Control, ExecutorConfig, GraphSet, Outcome, QueuedExecutor, StoreTime,
};
use holdpoint_graph::{
    CompiledGraph, Event, GraphId, KeyId, Namespace, Progress, QueueId, RequestId, RunId,
    RunPayload, RunStatus, SessionId, State,
};
use holdpoint_storage::{
    Address, Chain, ClaimRequest, ClaimedRun, Claims, Clock as _, EnqueueReply, Enqueued, IfBusy,
    Lane, NewRun, Random, RunHead, SignalRecord, SignalReply, SignalRequest, Store, SystemClock,
    When, meaning_hash,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::RedisServer;
use serde_json::Value;

/// Runs a test on each backend, with a store of its own.
pub(crate) async fn on_each_store(test: impl AsyncFn(Bench)) {
    let namespace = Namespace::new("test").unwrap();
    let config = SqliteConfig::new(Location::Memory, namespace.clone());
    let store = SqliteStore::open(config).await.unwrap();
    Box::pin(test(Bench::new(Arc::new(store)))).await;
    let server = RedisServer::start();
    let store = RedisStore::connect(RedisConfig::new(server.url(), namespace)).await.unwrap();
    Box::pin(test(Bench::new(Arc::new(store)))).await;
}

/// A store, graphs, and the log of the nodes that ran.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) graphs: GraphSet,
    pub(crate) config: ExecutorConfig,
    log: Log,
}

/// What ran, in order; nodes hold a clone.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    pub(crate) fn count(&self, entry: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|known| *known == entry).count()
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Bench {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let config = ExecutorConfig::default();
        Self { store, graphs: GraphSet::new(), config, log: Log::default() }
    }

    /// The log that this bench's nodes write to.
    pub(crate) fn log(&self) -> Log {
        self.log.clone()
    }

    /// The same store behind another handle.
    pub(crate) fn over(&self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self.clone() }
    }

    pub(crate) fn add(&mut self, graph: CompiledGraph) {
        self.graphs.add(graph);
    }

    pub(crate) fn new_run(graph: &str, input: Value) -> NewRun {
        let payload = RunPayload::new(State::from_json(input.clone()).unwrap());
        NewRun {
            run: Random.run_id(0),
            request: Random.request_id(),
            graph: GraphId::new(graph).unwrap(),
            fingerprint: None,
            queue: QueueId::new("default").unwrap(),
            session: None,
            if_busy: IfBusy::Enqueue,
            payload: payload.encode(),
            payload_hash: meaning_hash(&input),
            priority: 4,
            start: When::In(0),
            expires: None,
            deadline: None,
            key: None,
            tags: vec![],
            queue_depth_max: 1_000,
        }
    }

    pub(crate) async fn put(&self, new: NewRun) -> Enqueued {
        let EnqueueReply { items, .. } = self.store.enqueue(&[new], false).await.unwrap();
        items.into_iter().next().unwrap()
    }

    pub(crate) async fn enqueue(&self, graph: &str, input: Value) -> RunId {
        let new = Self::new_run(graph, input);
        let run = new.run.clone();
        assert!(matches!(self.put(new).await, Enqueued::Created { .. }));
        run
    }

    pub(crate) async fn enqueue_in(&self, session: &str, graph: &str, input: Value) -> RunId {
        let mut new = Self::new_run(graph, input);
        new.session = Some(SessionId::new(session).unwrap());
        let run = new.run.clone();
        assert!(matches!(self.put(new).await, Enqueued::Created { .. }));
        run
    }

    pub(crate) async fn enqueue_with_key(&self, key: &str, input: Value) -> Enqueued {
        let mut new = Self::new_run("line", input);
        new.key = Some(KeyId::new(key).unwrap());
        self.put(new).await
    }

    fn lanes(&self) -> Vec<Lane> {
        let queue = QueueId::new("default").unwrap();
        let lane = |graph: &CompiledGraph, fingerprint| Lane {
            queue: queue.clone(),
            graph: graph.id().clone(),
            fingerprint,
        };
        let pinned = self.graphs.iter().map(|g| lane(g, Some(g.fingerprint().clone())));
        let mut lanes: Vec<Lane> =
            pinned.chain(self.graphs.iter().map(|g| lane(g, None))).collect();
        lanes.sort();
        lanes.dedup();
        lanes
    }

    /// Claims one run as `worker`.
    pub(crate) async fn claim(&self, worker: &str) -> Option<Claimed> {
        let sent = SystemClock.monotonic();
        let claims = self.claims(worker, 1).await;
        let time = Arc::new(StoreTime::new(Arc::new(SystemClock), claims.now_ms));
        let run: ClaimedRun = claims.runs.into_iter().next()?;
        Some(Claimed { run, control: Control::new(sent + self.config.hold()), time })
    }

    async fn claims(&self, worker: &str, max: usize) -> Claims {
        let request = ClaimRequest {
            worker: holdpoint_graph::WorkerId::new(worker).unwrap(),
            nonce: Random.nonce(),
            lanes: self.lanes(),
            max,
            lease_ms: self.config.lease_ms(),
            oldest_first: false,
            bytes_max: 1 << 20,
        };
        self.store.claim(&request).await.unwrap()
    }

    /// Claims what there is as `worker`, up to a hundred, and says when.
    pub(crate) async fn claim_all(&self, worker: &str) -> Vec<(RunId, i64)> {
        let claims = self.claims(worker, 100).await;
        claims.runs.into_iter().map(|run| (run.head.run, claims.now_ms)).collect()
    }

    pub(crate) fn executor(&self) -> QueuedExecutor {
        QueuedExecutor::new(self.store.clone(), Arc::new(self.graphs.clone()))
            .with_config(self.config)
    }

    /// Claims one run and executes it.
    pub(crate) async fn work(&self) -> Option<Outcome> {
        let claimed = self.claim("w1").await?;
        Some(self.executor().execute(claimed).await)
    }

    /// Executes whatever can be claimed, waiting for timers of at most a second, until nothing is
    /// queued or scheduled.
    pub(crate) async fn drain(&self) {
        holdpoint_testkit::until_async(
            "nothing is queued or scheduled",
            std::time::Duration::from_secs(20),
            async || {
                while self.work().await.is_some() {}
                let stats = self.store.stats().await.unwrap();
                let waiting = |(status, count): &(RunStatus, u64)| {
                    matches!(status, RunStatus::Queued | RunStatus::Scheduled) && *count > 0
                };
                (!stats.counts.iter().any(waiting)).then_some(())
            },
        )
        .await;
    }

    /// The worker `w1` is gone, as its supervisor says.
    pub(crate) async fn lose(&self, worker: &str) {
        let worker = holdpoint_graph::WorkerId::new(worker).unwrap();
        self.store.lost(&worker, "signal 9", &[0]).await.unwrap();
    }

    pub(crate) async fn head(&self, run: &RunId) -> RunHead {
        self.store.head(run).await.unwrap().unwrap()
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        self.head(run).await.status()
    }

    pub(crate) async fn events(&self, run: &RunId) -> Vec<Event> {
        let part = self.store.journal(run, 0, 100_000).await.unwrap().unwrap();
        let mut chain = Chain::start(self.store.namespace(), run);
        let events: Vec<Event> =
            part.records.iter().map(|record| chain.decode(record).unwrap().event).collect();
        assert_eq!((chain.seq(), chain.hash()), (part.head.seq, part.head.hash));
        events
    }

    pub(crate) async fn progress(&self, run: &RunId) -> Progress {
        Progress::fold(&self.events(run).await).unwrap()
    }

    pub(crate) async fn state(&self, run: &RunId) -> State {
        self.progress(run).await.state().clone()
    }

    /// How often an event of the type is in the journal.
    pub(crate) async fn count(&self, run: &RunId, event: &str) -> usize {
        self.events(run).await.iter().filter(|known| known.type_name() == event).count()
    }

    pub(crate) async fn signal(&self, run: &RunId, address: Address, answer: Value) -> SignalReply {
        self.signal_as(Random.request_id(), run, address, answer).await
    }

    /// A signal with a request id of the caller's.
    pub(crate) async fn signal_as(
        &self,
        request: RequestId,
        run: &RunId,
        address: Address,
        answer: Value,
    ) -> SignalReply {
        let record = SignalRecord {
            answer,
            by: "ann".to_owned(),
            at_ms: self.store.now_ms().await.unwrap(),
            comment: None,
            groups: Vec::new(),
            from: None,
            request: request.to_string(),
        };
        let request = SignalRequest {
            run: run.clone(),
            request,
            address,
            args_hash: None,
            ballot: None,
            record: record.encode(),
        };
        self.store.signal(&request).await.unwrap()
    }

    pub(crate) async fn answer(&self, run: &RunId, answer: Value) {
        let reply = self.signal(run, Address::Only, answer).await;
        assert!(matches!(reply, SignalReply::Delivered { .. }), "{reply:?}");
    }
}
