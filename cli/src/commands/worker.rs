//! `worker`: a process that claims and runs, and a small one around it that notices its death.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdpoint_graph::{Code, QueueId, WorkerId};
use holdpoint_storage::{Clock, Store, SystemClock};
use holdpoint_worker::{
    ENV_WORKER_ID, Shutdown, SupervisorConfig, Worker, WorkerConfig, WorkerEnd, die_with_parent,
    is_child, supervise,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    app::Tuning,
    args,
    context::{Context, block_on, block_on_threads, duration, number},
    failure::{Failure, Stop},
    logs,
    place::{self, Access},
    settings::Settings,
};

/// By how many ms a worker's clock is to be wrong, in tests.
const ENV_CLOCK_OFFSET: &str = "HOLDPOINT_TEST_CLOCK_OFFSET_MS";
/// The longest pause between two tries to reach a store that is not there yet.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Works until it is told to end.
pub(crate) fn run(context: Context, flags: &args::worker::Worker) -> Result<(), Stop> {
    logs::start(&context, "info")?;
    let flags = context.settings.worker(flags);
    let config = config(&flags, &context.tuning)?;
    context.insist_on_good_graphs()?;
    if !context.has_graphs() && !is_child() {
        tracing::warn!("this program has no graphs: it does upkeep and runs nothing");
    }
    if flags.no_supervisor || is_child() {
        return block_on_threads(Box::pin(work(context, config)));
    }
    block_on(watch(context, config))
}

/// The settings of a worker, from its options and its program.
pub(crate) fn config(flags: &args::worker::Worker, tuning: &Tuning) -> Result<WorkerConfig, Stop> {
    let mut config = match duration("lease", flags.lease.as_ref())? {
        Some(lease) => WorkerConfig::with_lease(lease),
        None => WorkerConfig::default(),
    };
    tuning.apply(&mut config);
    if let Some(concurrency) = number("concurrency", flags.concurrency.as_ref())? {
        config.concurrency = concurrency;
    }
    if let Some(queues) = &flags.queues {
        let queues = queues.split(',').map(str::trim).map(QueueId::new);
        config.queues = queues.collect::<Result<_, _>>()?;
    }
    if let Some(drain) = duration("drain", flags.drain.as_ref())? {
        config.drain = drain;
    }
    if let Some(max_crashes) = number("max_crashes", flags.max_crashes.as_ref())? {
        config.max_crashes = max_crashes;
    }
    config.exit_when_idle = flags.exit_when_idle;
    config.check()?;
    Ok(config)
}

/// The supervisor: starts this program again as its child, with the same arguments.
async fn watch(context: Context, config: WorkerConfig) -> Result<(), Stop> {
    let program = std::env::current_exe()
        .map_err(|fault| broken(format!("the program's own path is unknown: {fault}")))?;
    let Some(store) = patient_open(&context.settings, &Shutdown::new()).await? else {
        return Ok(());
    };
    let supervisor = SupervisorConfig::new(program, context.args.clone(), &config);
    let code = supervise(supervisor, store)
        .await
        .map_err(|fault| broken(format!("the worker cannot be started: {fault}")))?;
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Stop::Exit(code)),
    }
}

/// The worker itself.
async fn work(context: Context, config: WorkerConfig) -> Result<(), Stop> {
    let shutdown = Shutdown::new();
    die_with_parent(shutdown.clone());
    let signals = end_on_signals(shutdown.clone())?;
    let Some(store) = patient_open(&context.settings, &shutdown).await? else {
        return Ok(());
    };
    let graphs = context.graphs.iter().cloned().collect();
    let upkeep_store = place::upkeep_store(&context.settings, config.lease);
    let mut worker = Worker::new(store, graphs, config)?;
    if let Some(clock) = wrong_clock()? {
        worker = worker.with_clock(Arc::new(clock));
    }
    if let Some(factory) = upkeep_store {
        worker = worker.with_upkeep_store(factory);
    }
    if let Ok(id) = std::env::var(ENV_WORKER_ID) {
        worker = worker.with_id(WorkerId::new(id)?);
    }
    let end = Box::pin(worker.run(shutdown)).await;
    signals.abort();
    ended(end)
}

/// The host's clock, but wrong by so much: for tests of what a wrong clock changes.
#[derive(Debug)]
struct WrongClock {
    offset_ms: i64,
}

impl Clock for WrongClock {
    fn wall_ms(&self) -> i64 {
        self.wall_us() / 1_000
    }
    fn wall_us(&self) -> i64 {
        SystemClock.wall_us().saturating_add(self.offset_ms.saturating_mul(1_000))
    }
    fn monotonic(&self) -> Instant {
        SystemClock.monotonic()
    }
}

fn wrong_clock() -> Result<Option<WrongClock>, Stop> {
    let Ok(text) = std::env::var(ENV_CLOCK_OFFSET) else { return Ok(None) };
    let offset_ms = text.parse().map_err(|_| {
        Failure::usage("clock offset", format!("{ENV_CLOCK_OFFSET} must be a number of ms"))
    })?;
    Ok(Some(WrongClock { offset_ms }))
}

/// What the end of a worker means for its process.
pub(crate) fn ended(end: WorkerEnd) -> Result<(), Stop> {
    match end {
        WorkerEnd::Drained | WorkerEnd::Idle => Ok(()),
        WorkerEnd::Aborted { left } => {
            tracing::warn!(left, "ended with runs that took no notice; their leases are back");
            Ok(())
        }
        WorkerEnd::Failed(why) => Err(broken(why)),
    }
}

fn broken(why: String) -> Stop {
    Failure::new("E_WORKER", 1, why).into()
}

/// SIGTERM and SIGINT: the first drains, the second hands back at once.
pub(crate) fn end_on_signals(shutdown: Shutdown) -> Result<tokio::task::JoinHandle<()>, Stop> {
    let watch =
        |kind| signal(kind).map_err(|fault| broken(format!("signals cannot be watched: {fault}")));
    let (mut terminate, mut interrupt) =
        (watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?);
    Ok(tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            shutdown.next();
        }
    }))
}

/// Opens the store, and waits for one that is not there yet. None: told to end before.
async fn patient_open(
    settings: &Settings,
    shutdown: &Shutdown,
) -> Result<Option<Arc<dyn Store>>, Stop> {
    let mut pause = Duration::from_millis(100);
    let mut said = String::new();
    loop {
        let failure = match place::open(settings, Access::Create).await {
            Ok(store) => return Ok(Some(store)),
            Err(Stop::Failed(failure)) if is_away(&failure.code) => failure,
            Err(stop) => return Err(stop),
        };
        if said != failure.message {
            tracing::warn!(cause = failure.message, "waiting for the store");
            said = failure.message;
        }
        tokio::select! {
            () = shutdown.draining() => return Ok(None),
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Whether a store that could not be opened may be there in a moment. Opening one twice is no
/// harm, so it makes no difference whether the first time got through.
fn is_away(code: &str) -> bool {
    [Code::StoreUnavailable, Code::UnknownOutcome].iter().any(|away| away.as_str() == code)
}
