//! What the graph under measurement tells: when nodes start, when runs end, and the CPU spent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use holdpoint_graph::{
    AppendReducer, CompiledGraph, GraphFaults, NodeContext, NodeError, State, StateGraph,
    StateSchema, Update,
};
use holdpoint_storage::{Clock as _, SystemClock};
use serde_json::{Value, json};

/// The bytes that each node appends.
const ITEM_BYTES: usize = 96;
/// The bytes of padding in the input.
const PAD_BYTES: usize = 160;

/// Stamps of the first node's starts.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    origin: Instant,
    first_us: Arc<AtomicU64>,
    last_us: Arc<AtomicU64>,
}

impl Probe {
    pub(crate) fn new() -> Self {
        let origin = SystemClock.monotonic();
        let first_us = Arc::new(AtomicU64::new(u64::MAX));
        Self { origin, first_us, last_us: Arc::default() }
    }

    fn now_us(&self) -> u64 {
        let passed = SystemClock.monotonic().saturating_duration_since(self.origin);
        u64::try_from(passed.as_micros()).unwrap_or(u64::MAX)
    }

    fn started(&self) {
        let now_us = self.now_us();
        self.first_us.fetch_min(now_us, Ordering::Relaxed);
        self.last_us.store(now_us, Ordering::Relaxed);
    }

    /// When the first node of all started.
    pub(crate) fn first(&self) -> Instant {
        self.origin + Duration::from_micros(self.first_us.load(Ordering::Relaxed))
    }

    /// When a first node last started.
    pub(crate) fn last(&self) -> Instant {
        self.origin + Duration::from_micros(self.last_us.load(Ordering::Relaxed))
    }
}

/// The input of one run.
pub(crate) fn input(id: usize) -> Value {
    json!({ "id": id, "pad": "x".repeat(PAD_BYTES), "log": [] })
}

/// The graph W.
pub(crate) fn graph(probe: &Probe) -> Result<CompiledGraph, GraphFaults> {
    let node = |name: &'static str, probe: Option<Probe>| {
        move |_: NodeContext, _: State| {
            if let Some(probe) = &probe {
                probe.started();
            }
            let item = format!("{name}{}", "y".repeat(ITEM_BYTES - name.len()));
            std::future::ready(Ok::<_, NodeError>(Update::new().set("log", item)))
        }
    };
    StateGraph::new("w")
        .with_schema(StateSchema::new().with("log", AppendReducer))
        .add_node("a", node("a", Some(probe.clone())))
        .add_node("b", node("b", None))
        .add_node("c", node("c", None))
        .add_edge("a", "b")
        .add_edge("b", "c")
        .set_entry_point("a")
        .set_finish_point("c")
        .compile()
}

/// The CPU time that a process has used, from the system's accounts (10 ms steps).
pub(crate) fn cpu(process: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
