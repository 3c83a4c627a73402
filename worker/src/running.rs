//! A worker at work: its parts, and how they end.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use holdpoint_executor::QueuedExecutor;
use holdpoint_storage::{GraphRecord, Lane, SharedClock, Store, WorkerRecord};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Health, Shutdown, StoreFactory, WorkerConfig, WorkerEnd,
    backend::{self, Jobs, Runtime},
    claim::{ClaimLoop, Quiet},
    health::Part,
    idle,
    job::Handler,
    leases::Leases,
    maintain::Upkeep,
    reset::Reset,
    trouble::Troubles,
    upkeep::UpkeepThread,
};

/// How long runs that were aborted may take to hand themselves back, at least.
const ABORT_MIN: Duration = Duration::from_secs(1);
/// How long handing back for runs that took no notice may take.
const HAND_BACK_MAX: Duration = Duration::from_secs(2);
/// How long the runtime may take to end when all its runs have.
const RUNTIME_END_MAX: Duration = Duration::from_secs(2);

/// What a worker is made of.
pub(crate) struct Plan {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) upkeep_store: StoreFactory,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) record: WorkerRecord,
    pub(crate) graphs: Vec<GraphRecord>,
    pub(crate) config: WorkerConfig,
    pub(crate) clock: SharedClock,
    pub(crate) health: Health,
    pub(crate) executor: QueuedExecutor,
    pub(crate) handler: Handler,
}

/// A worker at work.
pub(crate) struct Running {
    store: Arc<dyn Store>,
    config: WorkerConfig,
    lanes: Vec<Lane>,
    leases: Leases,
    clock: SharedClock,
    health: Health,
    quiet: Arc<Quiet>,
    stop: CancellationToken,
    claim_loop: ClaimLoop,
    runtime: Runtime,
    upkeep: UpkeepThread,
}

impl Running {
    pub(crate) fn start(plan: Plan) -> std::io::Result<Self> {
        let Plan { store, lanes, config, clock, health, .. } = plan;
        let (leases, stop) = (Leases::default(), CancellationToken::new());
        let (quiet, reset) = (Arc::new(Quiet::default()), Arc::new(Reset::new(Arc::clone(&clock))));
        let id = plan.record.worker.clone();
        let upkeep = Upkeep {
            leases: leases.clone(),
            clock: Arc::clone(&clock),
            health: health.clone(),
            config: config.clone(),
            record: plan.record,
            graphs: plan.graphs,
            executor: plan.executor,
            runtime: Handle::current(),
            closings: TaskTracker::new(),
            reset: Arc::clone(&reset),
            changed: Arc::default(),
            draining: stop.clone(),
        };
        let (jobs, waiting) = mpsc::channel(config.concurrency);
        let claim_loop = ClaimLoop {
            store: Arc::clone(&store),
            worker: id.clone(),
            lanes: lanes.clone(),
            config: config.clone(),
            clock: Arc::clone(&clock),
            leases: leases.clone(),
            jobs,
            quiet: Arc::clone(&quiet),
            troubles: Troubles::new("a claim", Part::Claim, Arc::clone(&clock), health.clone()),
            reset,
            stop: stop.clone(),
        };
        let runtime = Runtime {
            name: id.to_string(),
            jobs: Jobs::new(waiting),
            handler: plan.handler,
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
        };
        let upkeep = UpkeepThread::start(plan.upkeep_store, upkeep)?;
        Ok(Self {
            store,
            config,
            lanes,
            leases,
            clock,
            health,
            quiet,
            stop,
            claim_loop,
            runtime,
            upkeep,
        })
    }

    pub(crate) async fn run(self, shutdown: Shutdown) -> WorkerEnd {
        let Self { claim_loop, runtime, mut upkeep, stop, lanes, quiet, .. } = self;
        // When this future is dropped, so is everything it started.
        let _stops = stop.clone().drop_guard();
        let ending = Ending {
            store: self.store,
            config: self.config,
            clock: self.clock,
            leases: self.leases,
            jobs: runtime.jobs.clone(),
        };
        tokio::select! {
            biased;
            () = shutdown.draining() => {
                self.health.draining();
                upkeep.stop().await;
                return WorkerEnd::Drained;
            }
            ready = &mut upkeep.ready => {
                if ready.is_err() {
                    return WorkerEnd::Failed("the upkeep thread ended at once".to_owned());
                }
            }
        }
        let mut runtime = Task(tokio::spawn(backend::run(runtime, stop.clone())));
        let mut claims = Task(tokio::spawn(claim_loop.run()));
        let is_idle = async {
            if !ending.config.exit_when_idle {
                std::future::pending::<()>().await;
            }
            idle::wait(&ending.store, &lanes, &ending.leases, &quiet).await;
        };
        let end = tokio::select! {
            biased;
            () = shutdown.draining() => WorkerEnd::Drained,
            _ = &mut upkeep.ended => WorkerEnd::Failed("the upkeep thread ended".to_owned()),
            ended = &mut runtime.0 => WorkerEnd::Failed(format!("the runtime ended: {ended:?}")),
            ended = &mut claims.0 => WorkerEnd::Failed(format!("the claim loop ended: {ended:?}")),
            () = is_idle => WorkerEnd::Idle,
        };
        stop.cancel();
        self.health.draining();
        if let WorkerEnd::Failed(why) = &end {
            tracing::error!(why, "the worker broke; its runs are handed back");
            shutdown.abort();
        }
        let left = ending.end(&shutdown, &mut claims).await;
        if left == 0 && timeout(RUNTIME_END_MAX, &mut runtime.0).await.is_err() {
            tracing::warn!("the runtime did not end with its runs");
        }
        upkeep.stop().await;
        if left > 0 { WorkerEnd::Aborted { left } } else { end }
    }
}

/// A task that ends with its handle.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What it takes to end the runs.
struct Ending {
    store: Arc<dyn Store>,
    config: WorkerConfig,
    clock: SharedClock,
    leases: Leases,
    jobs: Jobs,
}

impl Ending {
    /// Ends all runs: in order while there is time, then at once. Answers how many took no
    /// notice.
    async fn end(&self, shutdown: &Shutdown, claims: &mut Task<()>) -> usize {
        self.leases.drain();
        let all_ended = async {
            if !claims.0.is_finished() {
                let _ = (&mut claims.0).await;
            }
            let mut unstarted = Vec::new();
            while let Some(job) = self.jobs.take_unstarted() {
                unstarted.push(job.hand_back(&*self.store, &self.clock));
            }
            join_all(unstarted).await;
            self.leases.emptied().await;
        };
        tokio::pin!(all_ended);
        tokio::select! {
            biased;
            () = &mut all_ended => return 0,
            () = shutdown.aborting() => {}
            () = sleep(self.config.drain) => {
                tracing::warn!("the drain took too long; the runs are handed back as they are");
            }
        }
        self.leases.abort();
        if timeout(self.config.grace.max(ABORT_MIN), &mut all_ended).await.is_ok() {
            return 0;
        }
        self.hand_back_the_rest().await
    }

    /// Hands back for runs that took no notice: a node that never yields, say.
    async fn hand_back_the_rest(&self) -> usize {
        let left = self.leases.all();
        let handed = left.iter().map(|held| {
            tracing::warn!(run = %held.lease.run, "the run took no notice and is handed back");
            held.control.lose();
            self.store.release(&held.lease)
        });
        // What cannot be handed back is recovered when its lease is over.
        let _ = timeout(HAND_BACK_MAX, join_all(handed)).await;
        left.len()
    }
}
