//! The program under test: a worker, a producer or an operator over a store whose calls pass the
//! crash points. It is this very test binary, started again with a role.

use std::{
    io::Write as _, os::unix::process::parent_id, process::ExitCode, sync::Arc, time::Duration,
};

use holdpoint::{
    CompiledGraph, ExecutorConfig, Fingerprint, GraphId, GraphResolver, GraphSet, Location,
    Namespace, Producer, QueuedExecutor, RedisConfig, RedisStore, ResolveError, RunId, RunRequest,
    SignalOptions, SqliteConfig, SqliteStore, Store, StoreError, Worker, WorkerConfig, WorkerEnd,
};
use holdpoint_testkit::{Crash, CrashStore, Program};
use tokio::signal::unix::{SignalKind, signal};

use crate::graph::{GRAPH, Tools, Version, graph};

/// The role, first of its words.
const ENV_ROLE: &str = "HOLDPOINT_MATRIX_ROLE";
/// The store's URL.
const ENV_STORE: &str = "HOLDPOINT_MATRIX_STORE";
/// What a worker says when it can be told to end.
pub(crate) const LISTENS: &str = "listening";
/// The lease of all workers: what a case waits for, and what a busy machine must not use up.
const LEASE: Duration = Duration::from_secs(2);
/// The key under which the run is enqueued, by whoever does.
pub(crate) const KEY: &str = "the-order";

/// This program in a role.
pub(crate) fn program(role: &str, url: &str) -> Program {
    let path = std::env::current_exe().expect("the system knows which program this is");
    Program::new(path).env(ENV_ROLE, role).env(ENV_STORE, url)
}

/// Plays the role that the environment names; none when it names none.
pub(crate) fn main() -> Option<ExitCode> {
    let role = std::env::var(ENV_ROLE).ok()?;
    std::thread::spawn(end_with_parent);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let played = runtime.block_on(play(role.split(' ').collect()));
    Some(match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Ends the process when the one that started it is gone: a run that is stopped leaves nobody.
fn end_with_parent() {
    let parent = parent_id();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(500));
    }
    std::process::exit(1);
}

async fn play(role: Vec<&str>) -> anyhow::Result<()> {
    let crash = Crash::from_env();
    let url = std::env::var(ENV_STORE)?;
    let store = crashing(open(&url).await?, &crash);
    let producer = Producer::new(Arc::clone(&store)).with_patience(Duration::from_secs(30));
    match role.as_slice() {
        ["worker", versions] => work(store, crash, &url, versions).await,
        ["enqueue"] => {
            producer.enqueue(&request()).await?;
            Ok(())
        }
        ["signal", run] => {
            // Somebody may have been quicker; the decision that counts is in the journal.
            let said =
                producer.signal(&SignalOptions::run(*run).gate("c").approve().by("it")).await;
            eprintln!("{said:?}");
            Ok(())
        }
        ["prune"] => {
            let mut retention = WorkerConfig::default().retention;
            (retention.done_ms, retention.failed_ms, retention.key_ms) = (0, 0, 0);
            while store.prune(retention, 1).await.or_else(|error| again(&error))? > 0 {}
            Ok(())
        }
        ["migrate", runs @ ..] => {
            let tools = Tools::new(&crash);
            let pins = [Version::One, Version::Two].map(|v| graph(v, &tools).fingerprint().clone());
            for run in runs {
                producer.migrate(&RunId::new(*run)?, &pins[0], &pins[1], "it").await?;
            }
            Ok(())
        }
        other => anyhow::bail!("there is no role {other:?}"),
    }
}

/// One that is not available has pruned nothing, so that it is asked again.
fn again(error: &StoreError) -> anyhow::Result<usize> {
    anyhow::ensure!(error.is_retryable(), "{error}");
    Ok(1)
}

/// What is enqueued, by whoever does it.
pub(crate) fn request() -> RunRequest {
    RunRequest::new(GRAPH).key(KEY).allow_unknown()
}

/// Opens the store of a URL.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let namespace = Namespace::new("matrix")?;
    Ok(match url.strip_prefix("sqlite:") {
        Some(path) => {
            let location = Location::File(path.into());
            Arc::new(SqliteStore::open(SqliteConfig::new(location, namespace)).await?)
        }
        None => Arc::new(RedisStore::connect(RedisConfig::new(url, namespace)).await?),
    })
}

fn crashing(store: Arc<dyn Store>, crash: &Crash) -> Arc<dyn Store> {
    Arc::new(CrashStore::new(store, crash.clone()))
}

async fn work(
    store: Arc<dyn Store>,
    crash: Crash,
    url: &str,
    versions: &str,
) -> anyhow::Result<()> {
    let tools = Tools::new(&crash);
    let shutdown = tools.shutdown.clone();
    let all = [("1", Version::One), ("2", Version::Two)];
    let served = all.iter().filter(|(name, _)| versions.contains(name));
    let graphs: Vec<CompiledGraph> = served.map(|(_, version)| graph(*version, &tools)).collect();
    let config = WorkerConfig {
        concurrency: 4,
        loss_delays: vec![Duration::ZERO],
        max_crashes: 10,
        ..WorkerConfig::with_lease(LEASE)
    };
    let resolver = Resolver { graphs: graphs.clone(), crash: crash.clone() };
    let executor =
        ExecutorConfig { sleep_in_place: Duration::ZERO, ..Worker::executor_config(&config) };
    let executor =
        QueuedExecutor::new(Arc::clone(&store), Arc::new(resolver)).with_config(executor);
    let mut worker = Worker::new(store, graphs, config)?.with_executor(executor);
    tools.health.set(worker.health()).expect("it is set once");
    if !url.starts_with("sqlite:") {
        let url = url.to_owned();
        worker = worker.with_upkeep_store(Arc::new(move || {
            let (url, crash) = (url.clone(), crash.clone());
            Box::pin(async move { Ok(crashing(open(&url).await?, &crash)) })
        }));
    }
    let mut terminate = signal(SignalKind::terminate())?;
    writeln!(std::io::stdout(), "{LISTENS}")?;
    let told = shutdown.clone();
    tokio::spawn(async move {
        while terminate.recv().await.is_some() {
            told.next();
        }
    });
    match Box::pin(worker.run(shutdown)).await {
        WorkerEnd::Drained | WorkerEnd::Idle => Ok(()),
        end @ (WorkerEnd::Aborted { .. } | WorkerEnd::Failed(_)) => anyhow::bail!("{end:?}"),
    }
}

/// Finds the program's graphs, by way of the point that is in it.
struct Resolver {
    graphs: Vec<CompiledGraph>,
    crash: Crash,
}

impl GraphResolver for Resolver {
    fn resolve(
        &self,
        graph: &GraphId,
        fingerprint: Option<&Fingerprint>,
    ) -> Result<CompiledGraph, ResolveError> {
        let passed = self.crash.at_blocking("resolve.in");
        passed.map_err(|error| ResolveError::Failed(error.to_string()))?;
        let mut set = GraphSet::new();
        self.graphs.iter().cloned().for_each(|graph| set.add(graph));
        set.resolve(graph, fingerprint)
    }
}
