//! A store of the test's own, a producer at it, and worker processes to be killed.

use std::{sync::Arc, time::Duration};

use holdpoint::{Event, Producer, Random, RunId, RunRequest, RunStatus, RunView, Store, WorkerId};
use holdpoint_testkit::{Ledger, Process, RedisServer, Scratch, until_async, verified_journal};
use serde_json::Value;

use crate::worker;

/// Far more than anything here needs, for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// The lease of all workers, unless a test says otherwise. A test that kills one says so to the
/// store, as a supervisor does, and waits for none.
const LEASE: Duration = Duration::from_secs(5);

pub(crate) struct World {
    scratch: Scratch,
    pub(crate) server: Option<RedisServer>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) producer: Producer,
}

/// A worker process.
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) process: Process,
}

impl Worker {
    /// Whether it serves, and can be told to end.
    pub(crate) fn listens(&self) -> bool {
        self.process.stdout().contains(worker::LISTENS)
    }
}

/// Plays a scenario on every kind of store.
pub(crate) async fn on_all(scenario: impl AsyncFn(&World)) {
    scenario(&World::sqlite().await).await;
    scenario(&World::redis().await).await;
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let scratch = Scratch::new();
        let store = worker::open(&scratch.sqlite_url()).await.unwrap();
        Self { scratch, server: None, producer: Producer::new(Arc::clone(&store)), store }
    }

    pub(crate) async fn redis() -> Self {
        let server = RedisServer::start();
        let store = worker::open(&server.url()).await.unwrap();
        let producer = Producer::new(Arc::clone(&store));
        Self { scratch: Scratch::new(), server: Some(server), producer, store }
    }

    pub(crate) fn url(&self) -> String {
        self.server.as_ref().map_or_else(|| self.scratch.sqlite_url(), RedisServer::url)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.scratch.ledger()
    }

    /// Starts a worker process with so many slots.
    pub(crate) fn worker(&self, slots: usize) -> Worker {
        self.worker_with(LEASE, slots)
    }

    /// Starts a worker process.
    pub(crate) fn worker_with(&self, lease: Duration, slots: usize) -> Worker {
        let id = Random.worker_id("test", std::process::id());
        let process = worker::program(self, &id, lease, slots).spawn();
        Worker { id, process }
    }

    /// `kill -9`, and what a supervisor does then: it hands the runs back.
    pub(crate) async fn kill(&self, mut worker: Worker) {
        worker.process.kill_9();
        self.store.lost(&worker.id, "signal 9", &[0]).await.unwrap();
    }

    pub(crate) async fn enqueue(&self, graph: &str, input: Value) -> RunId {
        let request = RunRequest::new(graph).input(input).allow_unknown();
        self.producer.enqueue(&request).await.unwrap().run
    }

    pub(crate) async fn view(&self, run: &RunId) -> RunView {
        self.producer.get(run).await.unwrap()
    }

    /// Waits until the run has this state.
    pub(crate) async fn until(&self, run: &RunId, status: RunStatus) -> RunView {
        until_async(&format!("{run} to be {}", status.as_str()), LONG, async || {
            let view = self.view(run).await;
            assert!(!view.status.is_terminal() || view.status == status, "{view:?}");
            (view.status == status).then_some(view)
        })
        .await
    }

    /// How many runs have this state.
    pub(crate) async fn count(&self, status: RunStatus) -> u64 {
        let counts = self.store.stats().await.unwrap().counts;
        counts.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| *count)
    }

    /// The events of a run, its journal verified.
    pub(crate) async fn events(&self, run: &RunId) -> Vec<Event> {
        let records = verified_journal(&*self.store, run).await;
        records.into_iter().map(|record| record.event).collect()
    }
}
