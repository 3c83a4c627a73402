//! Shapes: routes, forks, chains of tasks, sub-graphs.

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    NodeContext, NodeOptions, ReasonCode, RetryPolicy, State, StateGraph, task_graph,
};
use serde_json::json;

use crate::{
    bench::{Bench, on_each_store},
    nodes::logged,
};

/// T9 and T19: a route that panics or answers a node that does not exist fails the run, names
/// both, keeps the node's update, and is asked again by a redrive, the node is not.
#[tokio::test]
async fn a_failed_route_keeps_the_node_and_is_asked_again() {
    on_each_store(async |mut bench: Bench| {
        for (id, ghost) in [("panics", false), ("ghost", true)] {
            let log = bench.log();
            let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
            let graph = StateGraph::new(id)
                .add_node("a", logged("a", &log))
                .add_node("b", logged("b", &log))
                .add_conditional_edge(
                    "a",
                    move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                        0 if ghost => "ghost",
                        0 => panic!("no way"),
                        _ => "b",
                    },
                    ["b"],
                )
                .set_entry_point("a")
                .set_finish_point("b");
            bench.add(graph.compile().unwrap());
            let ran = log.count("a");
            let run = bench.enqueue(id, json!({})).await;
            let outcome = bench.work().await.unwrap();
            assert_eq!(outcome, Outcome::Failed(ReasonCode::NodeError));
            let progress = bench.progress(&run).await;
            let message = &progress.reason().unwrap().message;
            let word = if ghost { "ghost" } else { "no way" };
            assert!(message.contains("\"a\"") && message.contains(word), "{message}");
            assert_eq!(progress.state().get("last"), Some(&json!("a")));
            crate::faults::redrive(&bench, &run).await;
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            assert_eq!(log.count("a"), ran + 1);
        }
    })
    .await;
}

/// T10: a branch that panics does not cost its siblings their results.
#[tokio::test]
async fn a_panic_in_a_branch_keeps_its_siblings() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let bad = log.clone();
        let graph = StateGraph::new("fork")
            .add_router("start")
            .add_node("x", logged("x", &log))
            .add_node("y", logged("y", &log))
            .add_node_with(
                "bad",
                NodeOptions::new().retry(RetryPolicy::once()),
                move |_: NodeContext, _: State| {
                    bad.add("bad");
                    let first = bad.count("bad") == 1;
                    async move {
                        assert!(!first, "boom");
                        Ok(())
                    }
                },
            )
            .add_node("join", logged("join", &log))
            .set_entry_point("start")
            .set_finish_point("join");
        let graph = ["x", "bad", "y"]
            .iter()
            .fold(graph, |graph, name| graph.add_edge("start", *name).add_edge(*name, "join"));
        // Both write `last`, which would conflict: only one may.
        let graph = graph.compile().unwrap();
        bench.add(graph);
        let run = bench.enqueue("fork", json!({ "last": "x" })).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::NodeError)));
        let progress = bench.progress(&run).await;
        let reason = progress.reason().unwrap();
        assert_eq!(reason.node.as_deref(), Some("bad"));
        assert!(reason.message.contains("boom"), "{}", reason.message);
        assert_eq!((log.count("x"), log.count("y"), log.count("join")), (1, 1, 0));
        crate::faults::redrive(&bench, &run).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let counts = ["x", "y", "bad", "join"].map(|name| log.count(name));
        assert_eq!(counts, [1, 1, 2, 1]);
    })
    .await;
}

/// T11: tasks of a chain run in the given order and feed each other.
#[tokio::test]
async fn a_task_graph_is_a_chain_in_the_given_order() {
    on_each_store(async |mut bench: Bench| {
        let task = |name: &'static str| -> holdpoint_graph::TaskFunc {
            std::sync::Arc::new(move |_, input| {
                let text = format!("{}{name}", input.as_str().unwrap_or_default());
                Box::pin(async move { Ok(text.into()) })
            })
        };
        let tasks = vec![("z", task("z")), ("m", task("m")), ("a", task("a"))];
        bench.add(task_graph("chain", tasks).unwrap());
        let run = bench.enqueue("chain", json!({ "input": "-" })).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.state(&run).await.get("output"), Some(&json!("-zma")));
    })
    .await;
}

/// T12: a gate in a sub-graph parks, and a cycle in one ends at the step limit.
#[tokio::test]
async fn a_sub_graph_has_gates_and_limits() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let inner = StateGraph::new("inner")
            .add_node("s0", logged("s0", &log))
            .add_interrupt_node("gate", logged("gate", &log))
            .add_edge("s0", "gate")
            .set_entry_point("s0")
            .set_finish_point("gate")
            .compile()
            .unwrap();
        let cycle = StateGraph::new("cycle")
            .add_node("turn", logged("turn", &log))
            .add_conditional_edge("turn", |_| "turn", ["turn", holdpoint_graph::END])
            .set_entry_point("turn")
            .compile()
            .unwrap();
        for (id, sub) in [("gated", &inner), ("endless", &cycle)] {
            let graph = StateGraph::new(id)
                .add_subgraph("sub", sub, holdpoint_graph::KeyMapping::new())
                .set_entry_point("sub")
                .set_finish_point("sub");
            bench.add(graph.compile().unwrap());
        }
        bench.config.max_steps = 10;
        let gated = bench.enqueue("gated", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let progress = bench.progress(&gated).await;
        assert_eq!(progress.open().next().unwrap().gate.as_deref(), Some("sub/gate"));
        assert_eq!(log.count("gate"), 0);
        let endless = bench.enqueue("endless", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::StepLimit)));
        assert_eq!(log.count("turn"), 10);
        assert_eq!(bench.progress(&endless).await.steps(), 10);
    })
    .await;
}
