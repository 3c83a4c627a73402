//! The graph of the matrix: every kind of step that a run can take, on one straight line.
//!
//! ```text
//! a → pay (unsafe) → mail (idempotent) → gate → c → nap (a durable sleep) → end [ → bye ]
//! ```
//! Each node adds its name to the state's `path`, and a line to the ledger when it begins and right
//! before it returns; `pay` and `mail` also when they call the world outside.

use std::{
    fs::OpenOptions,
    io::Write as _,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdpoint::{
    AppendReducer, BoxFuture, Clock, CompiledGraph, Effect, Gate, Health, NodeContext, NodeError,
    NodeOptions, Question, RetryPolicy, Shutdown, State, StateGraph, StateSchema, SystemClock,
    Update,
};
use holdpoint_testkit::Crash;
use serde_json::json;

/// The graph's id.
pub(crate) const GRAPH: &str = "matrix";
/// The nodes, in order; the last is in the second version only.
pub(crate) const NODES: [&str; 7] = ["a", "pay", "mail", "c", "nap", "end", "bye"];
/// How long the run sleeps at first.
const NAP: Duration = Duration::from_millis(200);

/// Which structure of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    /// Its nodes, in order.
    pub(crate) fn nodes(self) -> &'static [&'static str] {
        match self {
            Self::One => &NODES[..6],
            Self::Two => &NODES,
        }
    }
}

/// What nodes can reach.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    pub(crate) crash: Crash,
    pub(crate) shutdown: Shutdown,
    /// The worker's, once it is there.
    pub(crate) health: Arc<OnceLock<Health>>,
}

impl Tools {
    pub(crate) fn new(crash: &Crash) -> Self {
        Self { crash: crash.clone(), shutdown: Shutdown::new(), health: Arc::default() }
    }
}

/// The graph.
pub(crate) fn graph(version: Version, tools: &Tools) -> CompiledGraph {
    let nodes = version.nodes();
    let schema = StateSchema::new().with("path", AppendReducer);
    let mut graph = StateGraph::new(GRAPH).with_schema(schema).set_entry_point(nodes[0]);
    for name in nodes {
        graph = graph.add_node_with(*name, options(name), node(tools.clone()));
    }
    for pair in nodes.windows(2) {
        graph = graph.add_edge(pair[0], pair[1]);
    }
    graph.set_finish_point(nodes[nodes.len() - 1]).compile().expect("the graph has no faults")
}

fn options(name: &str) -> NodeOptions {
    let retry = RetryPolicy::fixed(3, Duration::from_millis(10));
    match name {
        "pay" => NodeOptions::new().effect(Effect::Unsafe).retry(RetryPolicy::once()),
        "c" => NodeOptions::new().retry(retry).gate(Gate::new("c", Question::new("May c run?"))),
        _ => NodeOptions::new().retry(retry),
    }
}

fn node(
    tools: Tools,
) -> impl Fn(NodeContext, State) -> BoxFuture<'static, Result<Update, NodeError>> + Send + Sync {
    let tools = Arc::new(tools);
    move |ctx, _| {
        let tools = Arc::clone(&tools);
        Box::pin(async move {
            tools.crash.at("node.before").await?;
            write(&ctx, "start")?;
            tools.crash.at("node.in").await?;
            match ctx.node() {
                "a" => drain(&tools).await?,
                "pay" => {
                    write(&ctx, "call")?;
                    tools.crash.at("effect.in_call").await?;
                    write(&ctx, "answer")?;
                    tools.crash.at("effect.after_call").await?;
                }
                "mail" => write(&ctx, &format!("mail {}", ctx.idempotency_key()))?,
                "nap" => nap(&ctx, &tools.crash).await?,
                _ => {}
            }
            write(&ctx, "done")?;
            tools.crash.at("node.after").await?;
            Ok(Update::new().set("path", vec![ctx.node()]))
        })
    }
}

/// The points of a drain are reached by one that begins while a node runs, which ends when the
/// worker has taken notice.
async fn drain(tools: &Tools) -> Result<(), NodeError> {
    if matches!(tools.crash.point(), Some("release.before" | "drain.in")) {
        tools.shutdown.drain();
        let is_draining = || tools.health.get().is_some_and(|health| health.report().is_draining);
        while !is_draining() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(tools.crash.at("drain.in").await?)
}

/// Sleeps so that no worker is held. On a busy machine a sleep may be over before its time is
/// committed, and the node just goes on; where that would miss the point, it sleeps again, longer.
async fn nap(ctx: &NodeContext, crash: &Crash) -> Result<(), NodeError> {
    let is_about_this =
        matches!(crash.point(), Some("timer.before" | "timer.after" | "reschedule.before"));
    for n in 0..10 {
        ctx.sleep(&format!("nap {n}"), NAP * 2_u32.pow(n)).await?;
        if !(is_about_this && crash.is_pending()) {
            break;
        }
    }
    Ok(())
}

/// Appends a line to the ledger: one write, synced.
fn write(ctx: &NodeContext, effect: &str) -> Result<(), NodeError> {
    let line = json!({
        "run": ctx.run(), "session": ctx.session(), "graph": ctx.graph(), "node": ctx.node(),
        "visit": ctx.visit(), "attempt": ctx.attempt(), "epoch": ctx.epoch(), "effect": effect,
        "pid": std::process::id(), "at": SystemClock.wall_ms().to_string(),
    });
    let path = std::env::var_os("HOLDPOINT_LEDGER").unwrap_or_default();
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    Ok(file.sync_data()?)
}
