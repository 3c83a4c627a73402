//! From an acknowledged answer to the start of the next node, with an idle worker: one question at
//! a time, each of a run that is parked.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use holdpoint_graph::{
    CompiledGraph, END, GraphFaults, InterruptId, NodeContext, NodeError, RunId, RunStatus, State,
    StateGraph, Update,
};
use holdpoint_producer::{Producer, RunRequest, SignalOptions};
use holdpoint_storage::{Clock as _, QuestionFilter, Store, SystemClock};
use holdpoint_worker::{Shutdown, Worker, WorkerConfig, WorkerEnd};
use serde_json::json;
use tokio::sync::mpsc;

use crate::stores::{StoreKind, fresh};

/// Questions of a run: its journal stays as short as a person's work is.
const QUESTIONS: usize = 10;
/// Samples that do not count.
const WARM_UP: usize = 100;
/// How long the worker has to go back to waiting.
const REST: Duration = Duration::from_millis(3);
/// Longer than any wait here.
const LONG: Duration = Duration::from_secs(20);

/// The figures of one store, in ms.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    store: &'static str,
    samples: usize,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl Figures {
    pub(crate) fn to_json(&self) -> String {
        json!({
            "work": "hitl", "store": self.store, "samples": self.samples, "p50_ms": self.p50,
            "p95_ms": self.p95, "p99_ms": self.p99, "max_ms": self.max,
        })
        .to_string()
    }

    pub(crate) fn to_text(&self) -> String {
        format!(
            "{:<15} {} answers: acknowledged to next node p50 {:.2} ms, p95 {:.2} ms, \
             p99 {:.2} ms, max {:.2} ms",
            self.store, self.samples, self.p50, self.p95, self.p99, self.max
        )
    }
}

/// Measures on a fresh store.
pub(crate) async fn measure(kind: StoreKind, samples: usize) -> Result<Figures> {
    let fresh = fresh(kind, 0).await?;
    let producer = Producer::new(Arc::clone(&fresh.store));
    let (started, mut starts) = mpsc::channel(QUESTIONS);
    let worker =
        Worker::new(Arc::clone(&fresh.store), vec![graph(started)?], WorkerConfig::default())?
            .with_upkeep_store(Arc::clone(&fresh.second));
    let shutdown = Shutdown::new();
    let working = tokio::spawn(worker.run(shutdown.clone()));
    let mut times = Vec::with_capacity(samples);
    let mut run = None;
    for number in 0..WARM_UP + samples {
        if number % QUESTIONS == 0 {
            let request = RunRequest::new("hitl").allow_unknown();
            run = Some(producer.enqueue(&request).await?.run);
        }
        let run = run.as_ref().context("the first number begins a run")?;
        let question = parked(&*fresh.store, run).await?;
        tokio::time::sleep(REST).await;
        let signal = SignalOptions::run(run.as_str()).interrupt(question.as_str()).approve();
        producer.signal(&signal).await?;
        let acknowledged = SystemClock.monotonic();
        let start = tokio::time::timeout(LONG, starts.recv()).await?;
        let start: Instant = start.context("the worker is there")?;
        if number >= WARM_UP {
            // It may have started before the acknowledgement was here.
            let took = start.saturating_duration_since(acknowledged);
            times.push(took.as_secs_f64() * 1_000.0);
        }
    }
    shutdown.drain();
    let end = working.await?;
    if end != WorkerEnd::Drained {
        bail!("the worker ended as {end:?}");
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(samples * share / 100).copied().unwrap_or_default();
    let (p50, p95, p99) = (at(50), at(95), at(99));
    let max = times.last().copied().unwrap_or_default();
    Ok(Figures { store: kind.name(), samples, p50, p95, p99, max })
}

/// Waits until the run is parked; its one question.
async fn parked(store: &dyn Store, run: &RunId) -> Result<InterruptId> {
    loop {
        let head = store.head(run).await?.context("the run is there")?;
        if head.status() == RunStatus::Parked {
            let page = store.questions(&QuestionFilter::of_run(run), None, 2).await?;
            return Ok(page.rows.into_iter().next().context("it asks something")?.interrupt);
        }
        store.changed(run, Duration::from_millis(200)).await;
    }
}

/// A gated node that comes back to its gate, and tells when it starts.
fn graph(started: mpsc::Sender<Instant>) -> Result<CompiledGraph, GraphFaults> {
    let turn = move |ctx: NodeContext, _: State| {
        // Whoever measures has gone when nobody takes it.
        let _ = started.try_send(SystemClock.monotonic());
        std::future::ready(Ok::<_, NodeError>(Update::new().set("turns", ctx.visit())))
    };
    let route = |state: &State| {
        let turns = state.get("turns").and_then(serde_json::Value::as_u64);
        if turns < Some(QUESTIONS as u64) { "turn" } else { END }
    };
    StateGraph::new("hitl")
        .add_interrupt_node("turn", turn)
        .add_conditional_edge("turn", route, ["turn", END])
        .set_entry_point("turn")
        .compile()
}
