//! One measurement of W on one store: enqueue, drain, and the pick-up of an idle worker.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use futures_util::StreamExt as _;
use holdpoint_graph::RunStatus;
use holdpoint_producer::{Producer, RunRequest};
use holdpoint_storage::{Clock as _, Store, SystemClock};
use holdpoint_worker::{Shutdown, Worker, WorkerConfig};
use serde_json::json;

use crate::{
    probe::{self, Probe, cpu},
    stores::{Fresh, StoreKind, fresh},
};

/// Calls in flight while runs are enqueued, one run in each.
const ENQUEUE_CALLS: usize = 64;
/// Samples of the idle pick-up.
const PICKUPS: usize = 500;

/// How often it is looked whether all runs are completed: a look costs the server as much as a
/// commit, and is part of what is measured.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) runs: usize,
    /// Samples of `hitl`, without the warm-up.
    pub(crate) samples: usize,
    pub(crate) concurrency: usize,
    pub(crate) connections: usize,
    pub(crate) stores: Vec<StoreKind>,
}

impl Default for Settings {
    fn default() -> Self {
        let stores = Vec::new();
        Self { runs: 20_000, samples: 1_000, concurrency: 100, connections: 0, stores }
    }
}

/// The figures of one store.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    store: &'static str,
    runs: usize,
    concurrency: usize,
    enqueue_per_s: f64,
    drain_per_s: f64,
    total_per_s: f64,
    worker_ms_per_run: f64,
    server_ms_per_run: f64,
    pickup_ms: (f64, f64),
}

impl Figures {
    pub(crate) fn to_json(&self) -> String {
        json!({
            "work": "w", "store": self.store, "runs": self.runs, "concurrency": self.concurrency,
            "enqueue_per_s": self.enqueue_per_s, "drain_per_s": self.drain_per_s,
            "enqueue_and_drain_per_s": self.total_per_s,
            "worker_cpu_ms_per_run": self.worker_ms_per_run,
            "server_cpu_ms_per_run": self.server_ms_per_run,
            "pickup_p50_ms": self.pickup_ms.0, "pickup_p99_ms": self.pickup_ms.1,
        })
        .to_string()
    }

    pub(crate) fn to_text(&self) -> String {
        format!(
            "{:<15} {} runs, concurrency {}: enqueue {:>7.0}/s, drain {:>7.0} runs/s, both {:>7.0} \
             runs/s; CPU ms a run: this process {:.3}, server {:.3}; idle pick-up p50 {:.2} ms, \
             p99 {:.2} ms",
            self.store,
            self.runs,
            self.concurrency,
            self.enqueue_per_s,
            self.drain_per_s,
            self.total_per_s,
            self.worker_ms_per_run,
            self.server_ms_per_run,
            self.pickup_ms.0,
            self.pickup_ms.1
        )
    }
}

/// Measures W on a fresh store.
pub(crate) async fn measure(kind: StoreKind, settings: &Settings) -> Result<Figures> {
    let fresh = fresh(kind, settings.connections).await?;
    let producer = Producer::new(Arc::clone(&fresh.store));
    let probe = Probe::new();
    let enqueue = enqueue(&producer, settings.runs).await?;
    let server = || fresh.server_pid.map_or(Duration::ZERO, |pid| cpu(&pid.to_string()));
    let before = (cpu("self"), server());
    let worker = start(&fresh, &probe, settings)?;
    let drain = drained(&*fresh.store, &probe, settings.runs).await?;
    let after = (cpu("self"), server());
    let pickup_ms = pickups(&producer, &*fresh.store, &probe).await?;
    worker.1.drain();
    let end = worker.0.await?;
    if end != holdpoint_worker::WorkerEnd::Drained {
        bail!("the worker ended as {end:?}");
    }
    let per_s = |time: Duration| settings.runs as f64 / time.as_secs_f64();
    let per_run = |time: Duration| time.as_secs_f64() * 1_000.0 / settings.runs as f64;
    Ok(Figures {
        store: kind.name(),
        runs: settings.runs,
        concurrency: settings.concurrency,
        enqueue_per_s: per_s(enqueue),
        drain_per_s: per_s(drain),
        total_per_s: per_s(enqueue + drain),
        worker_ms_per_run: per_run(after.0.saturating_sub(before.0)),
        server_ms_per_run: per_run(after.1.saturating_sub(before.1)),
        pickup_ms,
    })
}

fn request(id: usize) -> RunRequest {
    RunRequest::new("w").input(probe::input(id))
}

/// Enqueues all runs, one call for each.
async fn enqueue(producer: &Producer, runs: usize) -> Result<Duration> {
    let began = SystemClock.monotonic();
    let mut calls = futures_util::stream::iter(0..runs)
        .map(|id| async move { producer.enqueue(&request(id)).await })
        .buffer_unordered(ENQUEUE_CALLS);
    while let Some(receipt) = calls.next().await {
        receipt?;
    }
    Ok(SystemClock.monotonic() - began)
}

type Working = (tokio::task::JoinHandle<holdpoint_worker::WorkerEnd>, Shutdown);

fn start(fresh: &Fresh, probe: &Probe, settings: &Settings) -> Result<Working> {
    let config = WorkerConfig { concurrency: settings.concurrency, ..WorkerConfig::default() };
    let worker = Worker::new(Arc::clone(&fresh.store), vec![probe::graph(probe)?], config)?
        .with_upkeep_store(Arc::clone(&fresh.second));
    let shutdown = Shutdown::new();
    let told = shutdown.clone();
    Ok((tokio::spawn(worker.run(told)), shutdown))
}

/// Waits until all runs are completed; the time since the first node started.
async fn drained(store: &dyn Store, probe: &Probe, runs: usize) -> Result<Duration> {
    loop {
        let stats = store.stats().await?;
        let count = |status| stats.counts.iter().find(|(s, _)| *s == status).map_or(0, |(_, n)| *n);
        if count(RunStatus::Failed) > 0 {
            bail!("{} runs failed", count(RunStatus::Failed));
        }
        if count(RunStatus::Completed) >= runs as u64 {
            return Ok(SystemClock.monotonic() - probe.first());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// From the call to the start of the first node, one run at a time: (p50, p99) in ms.
async fn pickups(producer: &Producer, store: &dyn Store, probe: &Probe) -> Result<(f64, f64)> {
    let mut samples = Vec::with_capacity(PICKUPS);
    for id in 0..PICKUPS {
        let began = SystemClock.monotonic();
        let run = producer.enqueue(&request(id)).await?.run;
        loop {
            let head = store.head(&run).await?.context("the run is there")?;
            if head.status() == RunStatus::Completed {
                break;
            }
            store.changed(&run, Duration::from_millis(200)).await;
        }
        samples.push((probe.last() - began).as_secs_f64() * 1_000.0);
        // The worker goes back to waiting.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    samples.sort_by(f64::total_cmp);
    let at = |share: usize| samples.get(samples.len() * share / 100).copied();
    Ok((at(50).unwrap_or_default(), at(99).unwrap_or_default()))
}
