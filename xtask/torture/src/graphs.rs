//! The graphs of the torture: each shape of run that promises something different.
//!
//! Every node writes a line when it begins and one right before it returns, and adds its name to
//! the list `path` of the state.

use std::{future::Future, sync::Arc, time::Duration};

use holdpoint_cli::App;
use holdpoint_graph::{
    AppendReducer, BoxFuture, CompiledGraph, Effect, Gate, GraphFaults, NodeContext, NodeError,
    NodeOptions, Question, RetryPolicy, State, StateGraph, StateSchema, Update,
};
use holdpoint_worker::WorkerConfig;

use crate::{effects, recorder};

/// The lease of the torture: a tenth of the default, and the times that go with it.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// How long after its end a lease is taken for lost.
pub(crate) const GRACE: Duration = Duration::from_millis(200);
/// The queue of the runs that are to outlive several leases.
pub(crate) const SLOW_QUEUE: &str = "slow";
/// How long a slow node takes.
pub(crate) const SLOW: Duration = Duration::from_millis(2_500);

type Done = Result<Update, NodeError>;
type Made = Result<CompiledGraph, GraphFaults>;

/// The program of a worker.
pub(crate) fn app() -> App {
    let graphs = [line(), long(), fork(), gate(), ask(), pay(), slow(), nap(), poison()];
    graphs.into_iter().fold(App::new(), App::graph).tune_worker(times)
}

/// Kills come so often that a run may well lose many workers through no fault of its own.
fn times(config: &mut WorkerConfig) {
    config.grace = GRACE;
    config.loss_delays = vec![Duration::ZERO];
    config.max_crashes = 10;
}

fn line() -> Made {
    chain("line", &["a", "b", "c"]).compile()
}

/// What is cancelled at a random instant.
fn long() -> Made {
    chain("long", &["a", "b", "c", "d", "e"]).compile()
}

fn fork() -> Made {
    let plain = ["plan", "x", "y", "z", "join"].into_iter().fold(graph("fork"), plain);
    ["x", "y", "z"]
        .into_iter()
        .fold(plain, |graph, branch| graph.add_edge("plan", branch).add_edge(branch, "join"))
        .set_entry_point("plan")
        .set_finish_point("join")
        .compile()
}

fn gate() -> Made {
    let options = NodeOptions::new().gate(Gate::new("ok", Question::new("Go on?")));
    let graph = plain(graph("gate"), "a").add_node_with("c", options, node(pause));
    ends(graph.add_edge("a", "c"), "a", "c")
}

fn ask() -> Made {
    let graph = plain(plain(graph("ask"), "a"), "c");
    let graph = graph.add_node(
        "ask",
        node(|ctx, _| async move {
            let answer = ctx.ask("why", Question::new("What is the answer?")).await?;
            Ok(Update::new().set("answer", answer.value))
        }),
    );
    ends(graph.add_edge("a", "ask").add_edge("ask", "c"), "a", "c")
}

/// An effect that must not be repeated, then one that may be under the same key.
fn pay() -> Made {
    let pay = NodeOptions::new().effect(Effect::Unsafe).retry(RetryPolicy::once());
    let mail = NodeOptions::new().retry(RetryPolicy::fixed(20, Duration::from_millis(50)));
    let graph = plain(plain(graph("pay"), "a"), "c")
        .add_node_with(
            "pay",
            pay,
            node(|ctx, _| async move {
                effects::call("unsafe", &ctx).await.map_err(NodeError::permanent)?;
                Ok(Update::new())
            }),
        )
        .add_node_with(
            "mail",
            mail,
            node(|ctx, _| async move {
                effects::call("idempotent", &ctx).await.map_err(NodeError::retryable)?;
                Ok(Update::new())
            }),
        );
    let graph = graph.add_edge("a", "pay").add_edge("pay", "mail").add_edge("mail", "c");
    ends(graph, "a", "c")
}

fn slow() -> Made {
    let graph = plain(plain(graph("slow"), "a"), "c").add_node(
        "slow",
        node(|_, _| async {
            tokio::time::sleep(SLOW).await;
            Ok(Update::new())
        }),
    );
    ends(graph.add_edge("a", "slow").add_edge("slow", "c"), "a", "c")
}

/// A durable sleep.
fn nap() -> Made {
    let graph = plain(plain(graph("nap"), "a"), "c").add_node(
        "nap",
        node(|ctx, state| async move {
            ctx.sleep("nap", Duration::from_millis(number(&state, "nap_ms"))).await?;
            Ok(Update::new())
        }),
    );
    ends(graph.add_edge("a", "nap").add_edge("nap", "c"), "a", "c")
}

/// What ends every worker that takes it.
fn poison() -> Made {
    graph("poison").add_node("p", node(abort)).set_entry_point("p").set_finish_point("p").compile()
}

fn graph(id: &str) -> StateGraph {
    StateGraph::new(id).with_schema(StateSchema::new().with("path", AppendReducer))
}

fn plain(graph: StateGraph, name: &str) -> StateGraph {
    graph.add_node(name, node(pause))
}

fn chain(id: &str, names: &[&str]) -> StateGraph {
    let graph = names.iter().fold(graph(id), |graph, name| plain(graph, name));
    let graph = names.windows(2).fold(graph, |graph, pair| match pair {
        [from, to] => graph.add_edge(*from, *to),
        _ => graph,
    });
    let (first, last) = (names.first().copied(), names.last().copied());
    graph.set_entry_point(first.unwrap_or_default()).set_finish_point(last.unwrap_or_default())
}

fn ends(graph: StateGraph, first: &str, last: &str) -> Made {
    graph.set_entry_point(first).set_finish_point(last).compile()
}

/// The work of a plain node: a moment, so that there is something to kill.
async fn pause(_: NodeContext, state: State) -> Done {
    tokio::time::sleep(Duration::from_millis(number(&state, "ms"))).await;
    Ok(Update::new())
}

/// Wraps a node's work with its lines in the ledger.
fn node<F, Fut>(
    work: F,
) -> impl Fn(NodeContext, State) -> BoxFuture<'static, Done> + Send + Sync + 'static
where
    F: Fn(NodeContext, State) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Done> + Send + 'static,
{
    let work = Arc::new(work);
    move |ctx, state| {
        let work = Arc::clone(&work);
        Box::pin(async move {
            let execution = recorder::Execution::begin(&ctx)?;
            let update = work(ctx.clone(), state).await?;
            execution.done()?;
            Ok(update.set("path", vec![ctx.node()]))
        })
    }
}

async fn abort(_: NodeContext, _: State) -> Done {
    std::process::abort()
}

fn number(state: &State, key: &str) -> u64 {
    state.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_graph_compiles() {
        let graphs = [line(), long(), fork(), gate(), ask(), pay(), slow(), nap(), poison()];
        for graph in graphs {
            graph.unwrap();
        }
    }
}
