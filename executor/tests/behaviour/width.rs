//! Wide forks: each branch once, in time that grows with their number.

use holdpoint_executor::Outcome;
use holdpoint_graph::{AppendReducer, NodeContext, Send, State, StateGraph, StateSchema, Update};
use serde_json::json;

use crate::bench::{Bench, on_each_store};

/// plan → n workers, which end one group after another → collect.
fn fan() -> holdpoint_graph::CompiledGraph {
    StateGraph::new("fan")
        .with_schema(StateSchema::new().with("items", AppendReducer))
        .add_router("plan")
        .add_node("work", |_: NodeContext, state: State| async move {
            let index: u64 = state.read("index")?;
            for _ in 0..index % 10 {
                tokio::task::yield_now().await;
            }
            Ok(Update::new().set("items", index))
        })
        .add_router("collect")
        .add_fan_edge(
            "plan",
            |state: &State| {
                let n = state.get("n").and_then(serde_json::Value::as_u64).unwrap_or_default();
                let send = |index| Send::new("work", json!({ "index": index }));
                (0..n).map(send).collect::<Vec<Send>>()
            },
            ["work"],
        )
        .add_edge("work", "collect")
        .set_entry_point("plan")
        .set_finish_point("collect")
        .compile()
        .unwrap()
}

/// The widest fork there may be: its branches end group after group, each group one commit.
#[tokio::test]
async fn ten_thousand_branches_end_in_time() {
    on_each_store(async |mut bench: Bench| {
        bench.add(fan());
        bench.config.max_steps = 20_000;
        let run = bench.enqueue("fan", json!({ "n": 10_000 })).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let items = bench.state(&run).await.get("items").cloned();
        assert_eq!(items, Some(json!((0..10_000).collect::<Vec<_>>())));
    })
    .await;
}
