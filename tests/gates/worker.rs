//! The worker processes: this test binary, started again with the environment that names a store.

use std::{os::unix::process::parent_id, sync::Arc, time::Duration};

use holdpoint::{
    Location, Namespace, RedisConfig, RedisStore, Shutdown, SqliteConfig, SqliteStore, Store,
    StoreError, Synchronous, Worker, WorkerConfig, WorkerEnd, WorkerId,
};
use holdpoint_testkit::{Program, until};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    graphs,
    world::{LONG, World},
};

/// The store's URL; whoever has it is a worker.
const ENV_STORE: &str = "HOLDPOINT_GATES_STORE";
/// The worker's id.
const ENV_WORKER: &str = "HOLDPOINT_GATES_WORKER";
/// Its lease in ms.
const ENV_LEASE: &str = "HOLDPOINT_GATES_LEASE";
/// How many runs it takes at once.
const ENV_SLOTS: &str = "HOLDPOINT_GATES_SLOTS";
/// The path of its ledger.
const ENV_LEDGER: &str = "HOLDPOINT_GATES_LEDGER";
/// What a worker says when it can be told to end.
pub(crate) const LISTENS: &str = "listening";
/// The test that a worker process plays its role in.
const ROLE: &str = "worker::a_worker_process_ends_when_it_is_told";

/// A worker process to be started.
pub(crate) fn program(world: &World, id: &WorkerId, lease: Duration, slots: usize) -> Program {
    let path = std::env::current_exe().unwrap();
    Program::new(path)
        .args(["--exact", ROLE, "--nocapture"])
        .env(ENV_STORE, world.url())
        .env(ENV_WORKER, id.as_str())
        .env(ENV_LEASE, lease.as_millis().to_string())
        .env(ENV_SLOTS, slots.to_string())
        .env(ENV_LEDGER, world.ledger().path())
}

/// A worker's process takes this test as its entry; without a store in the environment it is one.
#[test]
fn a_worker_process_ends_when_it_is_told() {
    if std::env::var_os(ENV_STORE).is_some() {
        std::thread::spawn(end_with_parent);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(Box::pin(work()));
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::sqlite());
    let mut worker = world.worker(1);
    until("the worker to listen", LONG, || worker.listens().then_some(()));
    worker.process.sigterm();
    assert_eq!(worker.process.wait(LONG).code(), Some(0), "{}", worker.process.stderr());
}

/// Ends the process when the one that started it is gone: a test that is stopped leaves nobody.
fn end_with_parent() {
    let parent = parent_id();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(500));
    }
    std::process::exit(1);
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Opens the store of a URL. What a dead process had handed to the system is not lost, so that
/// nothing here needs to wait for a disk.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let namespace = Namespace::new("gates")?;
    Ok(match url.strip_prefix("sqlite:") {
        Some(path) => {
            let config = SqliteConfig::new(Location::File(path.into()), namespace);
            let config = SqliteConfig { synchronous: Synchronous::Normal, ..config };
            Arc::new(SqliteStore::open(config).await?)
        }
        None => Arc::new(RedisStore::connect(RedisConfig::new(url, namespace)).await?),
    })
}

async fn work() {
    let url = env(ENV_STORE);
    let config = WorkerConfig {
        concurrency: env(ENV_SLOTS).parse().unwrap(),
        loss_delays: vec![Duration::ZERO],
        max_crashes: 10,
        ..WorkerConfig::with_lease(Duration::from_millis(env(ENV_LEASE).parse().unwrap()))
    };
    let graphs = graphs::all(&graphs::Outside::at(env(ENV_LEDGER)));
    let mut worker = Worker::new(open(&url).await.unwrap(), graphs, config)
        .unwrap()
        .with_id(WorkerId::new(env(ENV_WORKER)).unwrap());
    if !url.starts_with("sqlite:") {
        worker = worker.with_upkeep_store(Arc::new(move || {
            let url = url.clone();
            Box::pin(async move { open(&url).await })
        }));
    }
    let shutdown = Shutdown::new();
    let (mut terminate, told) = (signal(SignalKind::terminate()).unwrap(), shutdown.clone());
    tokio::spawn(async move {
        while terminate.recv().await.is_some() {
            told.next();
        }
    });
    println!("{LISTENS}");
    let end = worker.run(shutdown).await;
    assert_eq!(end, WorkerEnd::Drained);
}
