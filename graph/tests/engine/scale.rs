//! Big shapes: they work in time that grows with them, and without deep stacks.

use holdpoint_graph::{CompiledGraph, KeyMapping, StateGraph};
use serde_json::json;

use crate::driver::{Driver, lists, plain, step};

#[test]
fn a_chain_of_ten_thousand_nodes_compiles_and_is_drawn() {
    let mut graph = StateGraph::new("chain").with_schema(lists()).set_entry_point("n0");
    for index in 0..10_000 {
        graph = graph.add_node(format!("n{index}"), step);
        if index > 0 {
            graph = graph.add_edge(format!("n{}", index - 1), format!("n{index}"));
        }
    }
    let graph = graph.set_finish_point("n9999").compile().unwrap();
    assert_eq!(graph.to_mermaid().lines().count(), 20_004);
    let mut run = Driver::unchecked(&graph, json!({}), 300);
    run.run();
    assert_eq!(run.progress.steps(), 300);
}

#[test]
fn a_fork_of_two_thousand_sends_completes() {
    let graph = crate::sends::fan();
    let mut run =
        Driver::unchecked(&graph, json!({ "n": 2_000, "ballast": "x".repeat(10_000) }), 3_000);
    run.run_to_end();
    assert_eq!(run.value("items"), json!((0..2_000).collect::<Vec<_>>()));
}

#[test]
fn fifty_sub_graphs_inside_one_another_run() {
    let mut inner: CompiledGraph = plain("g0", &[("x", "END")]).compile().unwrap();
    for level in 1..=50 {
        inner = StateGraph::new(format!("g{level}"))
            .with_schema(lists())
            .add_subgraph(
                "s",
                &inner,
                KeyMapping::new().map(format!("k{level}"), format!("k{}", level - 1)),
            )
            .add_node("after", step)
            .set_entry_point("s")
            .add_conditional_edge("s", |_| "after", ["after"])
            .set_finish_point("after")
            .compile()
            .unwrap();
    }
    let mut run = Driver::start(&inner, json!({}));
    run.run_to_end();
    assert_eq!(run.path().len(), 51);
    assert_eq!(run.path()[0], format!("{}x", "s/".repeat(50)));
}
