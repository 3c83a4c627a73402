//! Forks and joins: when a join runs, and how often.

use holdpoint_graph::{END, StateGraph};
use serde_json::json;

use crate::driver::{Driver, lists, plain, step};

/// Runs to the end in the order of branches and in the reverse one; the state is the same.
fn walked(graph: StateGraph) -> String {
    let graph = graph.compile().unwrap();
    let mut first = Driver::start(&graph, json!({}));
    first.run_to_end();
    let mut last = Driver::start(&graph, json!({}));
    last.run_by(|count| count - 1);
    assert_eq!(first.progress.state(), last.progress.state());
    assert_eq!(first.progress.steps(), last.progress.steps());
    first.walked()
}

const UNEVEN: [(&str, &str); 6] =
    [("a", "b"), ("a", "c"), ("b", "b2"), ("b2", "d"), ("c", "d"), ("d", "END")];

#[test]
fn uneven_branches_join_once() {
    assert_eq!(walked(plain("g", &UNEVEN)), "a b b2 c d");
}

#[test]
fn the_order_of_the_edges_is_the_order_of_the_branches() {
    let mut turned = UNEVEN;
    turned.swap(0, 1);
    assert_eq!(walked(plain("g", &turned)), "a c b b2 d");
}

#[test]
fn branches_of_one_three_and_seven_nodes_join_once() {
    let mut edges: Vec<(String, String)> = Vec::new();
    for length in [1, 3, 7] {
        let mut from = "a".to_owned();
        for index in 0..length {
            let node = format!("n{length}-{index}");
            edges.push((from, node.clone()));
            from = node;
        }
        edges.push((from, "join".to_owned()));
    }
    edges.push(("join".to_owned(), "END".to_owned()));
    let edges: Vec<(&str, &str)> = edges.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let walked = walked(plain("g", &edges));
    let expect = "a n1-0 n3-0 n3-1 n3-2 n7-0 n7-1 n7-2 n7-3 n7-4 n7-5 n7-6 join";
    assert_eq!(walked, expect);
}

#[test]
fn a_branch_does_not_wait_for_its_sibling() {
    let graph = plain("g", &UNEVEN).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_node("a");
    run.run_node("b");
    assert_eq!(run.ready(), ["b2", "c"], "b2 starts when b is done, while c still runs");
    run.run_node("b2");
    assert_eq!(run.ready(), ["c"]);
    run.run_node("c");
    assert_eq!(run.ready(), ["d"]);
}

#[test]
fn a_target_that_the_others_must_pass_is_itself_the_join() {
    let edges = [("a", "b"), ("a", "d"), ("b", "d"), ("d", "END")];
    assert_eq!(walked(plain("g", &edges)), "a b d");
}

#[test]
fn groups_that_meet_early_join_there_first() {
    let edges = [
        ("a", "b"),
        ("a", "x"),
        ("a", "c"),
        ("b", "m"),
        ("c", "m"),
        ("m", "end"),
        ("x", "end"),
        ("end", "END"),
    ];
    let graph = plain("g", &edges).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_node("a");
    run.run_node("b");
    run.run_node("c");
    assert_eq!(run.ready(), ["m", "x"], "m waits for b and c, not for x");
    run.run_to_end();
    assert_eq!(run.walked(), "a b c m x end");
    assert_eq!(walked(plain("g", &edges)), "a b c m x end");
}

#[test]
fn forks_nest() {
    let edges = [
        ("a", "b"),
        ("a", "c"),
        ("b", "b1"),
        ("b", "b2"),
        ("b1", "j"),
        ("b2", "j"),
        ("j", "end"),
        ("c", "end"),
        ("end", "END"),
    ];
    assert_eq!(walked(plain("g", &edges)), "a b b1 b2 j c end");
    // The same with one join for both.
    let edges = [
        ("a", "b"),
        ("a", "c"),
        ("b", "b1"),
        ("b", "b2"),
        ("b1", "end"),
        ("b2", "end"),
        ("c", "end"),
        ("end", "END"),
    ];
    assert_eq!(walked(plain("g", &edges)), "a b b1 b2 c end");
}

#[test]
fn a_fork_may_join_at_the_end() {
    let edges = [("a", "b"), ("a", "c"), ("b", "END"), ("c", "END")];
    assert_eq!(walked(plain("g", &edges)), "a b c");
    let edges = [("a", "b"), ("a", "END"), ("b", "END")];
    assert_eq!(walked(plain("g", &edges)), "a b");
    let nested =
        [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "END"), ("d", "END"), ("e", "END")];
    assert_eq!(walked(plain("g", &nested)), "a b d e c");
}

#[test]
fn a_fork_in_a_cycle_joins_in_every_round() {
    let graph = plain("g", &[("a", "b"), ("a", "c"), ("b", "j"), ("c", "j")]).add_conditional_edge(
        "j",
        |state| match state.get("path").and_then(|path| path.as_array()).map(Vec::len) {
            Some(8) => END,
            _ => "a",
        },
        ["a", END],
    );
    assert_eq!(walked(graph), "a b c j a b c j");
}

#[test]
fn after_a_route_the_node_behind_runs_once_after_the_chosen_parent() {
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("start", step)
        .add_node("A", step)
        .add_node("B", step)
        .add_node("C", step)
        .add_node("D", step)
        .set_entry_point("start")
        .add_conditional_edge("start", |s| s.read::<String>("route").unwrap(), ["A", "B"])
        .add_edge("A", "C")
        .add_edge("B", "C")
        .add_edge("C", "D")
        .set_finish_point("D")
        .compile()
        .unwrap();
    for (route, expect) in [("A", "start A C D"), ("B", "start B C D")] {
        let mut run = Driver::start(&graph, json!({ "route": route }));
        assert_eq!(run.run_to_end().walked(), expect);
    }
}

#[test]
fn a_route_inside_a_branch_keeps_the_join() {
    let graph = plain("g", &[("a", "r"), ("a", "z"), ("z", "end"), ("end", "END")])
        .add_node("x", step)
        .add_node("y", step)
        .add_node("y2", step)
        .add_conditional_edge("r", |s| s.read::<String>("route").unwrap(), ["x", "y"])
        .add_edge("x", "end")
        .add_edge("y", "y2")
        .add_edge("y2", "end")
        .compile()
        .unwrap();
    for (route, expect) in [("x", "a r x z end"), ("y", "a r y y2 z end")] {
        let mut run = Driver::start(&graph, json!({ "route": route }));
        assert_eq!(run.run_to_end().walked(), expect);
    }
}

#[test]
fn a_failed_branch_fails_the_run_and_its_sibling_is_not_repeated() {
    use holdpoint_graph::{NodeContext, NodeError, NodeOptions, RetryPolicy, State, Update};
    use std::sync::atomic::{AtomicU32, Ordering};

    let tries = std::sync::Arc::new(AtomicU32::new(0));
    let flaky = move |ctx: NodeContext, _: State| {
        let so_far = tries.fetch_add(1, Ordering::Relaxed);
        async move {
            match so_far {
                0 => Err(NodeError::retryable("no luck")),
                _ => Ok(Update::new().set("path", ctx.node())),
            }
        }
    };
    let graph = plain("mix", &[("start", "ok"), ("ok", "join"), ("join", "END")])
        .add_node_with("flaky", NodeOptions::new().retry(RetryPolicy::once()), flaky)
        .add_edge("start", "flaky")
        .add_edge("flaky", "join")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let reason = run.run_to_failure();
    assert_eq!((reason.message.as_str(), reason.node.as_deref()), ("no luck", Some("flaky")));
    run.redrive(None);
    assert_eq!(run.ready(), ["flaky"], "the finished sibling is not repeated");
    run.run_to_end();
    assert_eq!((run.walked().as_str(), run.ran("ok")), ("start ok flaky join", 1));
}
