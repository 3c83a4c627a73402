//! A Redis, perhaps behind a relay, and the fixtures program on it.

use std::{sync::Arc, time::Duration};

use holdpoint::{
    Clock as _, Namespace, Producer, RedisConfig, RedisStore, RunId, RunRequest, RunStatus,
    SystemClock,
};
use holdpoint_testkit::{Ledger, Process, Program, Proxy, RedisServer, Scratch, until_async};

/// Far more than anything here needs, for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A store with a producer that reaches it directly, and workers that may have to take the relay.
pub(crate) struct World {
    scratch: Scratch,
    pub(crate) server: RedisServer,
    pub(crate) proxy: Proxy,
    pub(crate) producer: Producer,
}

impl World {
    pub(crate) async fn new() -> Self {
        // Loading is slow on purpose, and commands that only tests need are allowed.
        let server = RedisServer::config()
            .line("enable-debug-command yes")
            .line("loading-process-events-interval-bytes 1024")
            .start();
        let config = RedisConfig::new(server.url(), Namespace::new("default").unwrap());
        let producer = Producer::new(Arc::new(RedisStore::connect(config).await.unwrap()));
        let proxy = Proxy::to_redis(&server);
        Self { scratch: Scratch::new(), server, proxy, producer }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.scratch.ledger()
    }

    /// The fixtures program on the store behind the relay.
    pub(crate) fn program(&self) -> Program {
        Program::example("fixtures")
            .current_dir(self.scratch.path())
            .env("HOLDPOINT_STORE", self.proxy.url())
            .env("HOLDPOINT_LEDGER", self.ledger().path())
    }

    /// Starts a worker process.
    pub(crate) fn start(&self, args: &[&str]) -> Process {
        self.program().args(["worker", "--no-supervisor"]).args(args).spawn()
    }

    /// Starts a worker process and waits until it has done something.
    pub(crate) async fn worker(&self, args: &[&str]) -> Process {
        let worker = self.start(args);
        self.serve().await;
        worker
    }

    /// Enqueues a run, however often that takes.
    pub(crate) async fn enqueue(&self, graph: &str, input: serde_json::Value) -> RunId {
        until_async("the store to take a run", LONG, async || {
            let request = RunRequest::new(graph).input(input.clone()).allow_unknown();
            self.producer.enqueue(&request).await.ok().map(|receipt| receipt.run)
        })
        .await
    }

    pub(crate) async fn until_completed(&self, run: &RunId) {
        until_async(&format!("{run} to complete"), LONG, async || {
            let view = self.producer.get(run).await.ok()?;
            assert_ne!(view.status, RunStatus::Failed, "{view:?}");
            (view.status == RunStatus::Completed).then_some(())
        })
        .await;
    }

    /// Waits until a node of the run has started.
    pub(crate) async fn until_started(&self, run: &RunId, node: &str) {
        until_async(&format!("{node} of {run} to start"), LONG, async || {
            (self.ledger().count(run.as_str(), node, "start") > 0).then_some(())
        })
        .await;
    }

    /// Enqueues a run and waits until it was done; answers how long that took.
    pub(crate) async fn serve(&self) -> Duration {
        let began = SystemClock.monotonic();
        let run = self.enqueue("lin", serde_json::json!({})).await;
        self.until_completed(&run).await;
        SystemClock.monotonic().duration_since(began)
    }
}

/// The lines that a process has said.
pub(crate) fn lines(process: &Process) -> Vec<String> {
    process.stderr().lines().map(str::to_owned).collect()
}
