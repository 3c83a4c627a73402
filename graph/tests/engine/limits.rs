//! Limits: steps over a run's whole life, the size and depth of the state, forks inside forks.

use holdpoint_graph::{
    CompiledGraph, END, Next, NodeContext, NodeError, ReasonCode, State, StateGraph, Update,
    limits::{FORK_DEPTH_MAX, FORK_WIDTH_MAX, JSON_DEPTH_MAX, STATE_BYTES_MAX},
};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, plain, step};

/// count → count ... n times, each time over a router.
fn looped() -> CompiledGraph {
    let again = |state: &State| {
        let rounds = state["path"].as_array().map(Vec::len).unwrap();
        if (rounds as u64) < state["n"].as_u64().unwrap() { "count" } else { END }
    };
    StateGraph::new("loop")
        .with_schema(lists())
        .add_node("count", step)
        .add_router("route")
        .set_entry_point("count")
        .add_edge("count", "route")
        .add_conditional_edge("route", again, ["count", END])
        .compile()
        .unwrap()
}

#[test]
fn a_run_makes_exactly_its_steps() {
    for n in [9, 10] {
        let mut run = Driver::start_with(&looped(), json!({ "n": n }), 10);
        run.run_to_end();
        assert_eq!(run.progress.steps(), n, "routers do not count");
    }
    let mut run = Driver::start_with(&looped(), json!({ "n": 11 }), 10);
    let reason = run.run_to_failure();
    assert_eq!((reason.code, reason.node.as_deref()), (ReasonCode::StepLimit, Some("count")));
    assert!(reason.message.contains("10 steps"), "{}", reason.message);
    assert!(reason.message.contains("count 11 times"), "{}", reason.message);
    assert_eq!((run.path().len(), run.progress.steps()), (10, 10), "the state is kept");
    run.redrive(None);
    assert_eq!(run.run_to_failure().code, ReasonCode::StepLimit, "the same limit still holds");
    run.redrive(Some(11));
    run.run_to_end();
    assert_eq!((run.path().len(), run.ran("count")), (11, 11), "nothing is repeated");
}

#[test]
fn attempts_do_not_count() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let tries = std::sync::Arc::new(AtomicU32::new(0));
    let flaky = move |_: NodeContext, _: State| {
        let so_far = tries.fetch_add(1, Ordering::Relaxed);
        async move { if so_far < 3 { Err(NodeError::retryable("no")) } else { Ok(()) } }
    };
    let graph = StateGraph::new("g").add_node("a", flaky).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    let mut run = Driver::start_with(&graph, json!({}), 1);
    run.run_to_end();
    assert_eq!((run.progress.steps(), run.progress.counters().node_errors), (1, 3));
}

#[test]
fn a_fork_does_not_run_over_the_limit() {
    let edges = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "END"), ("c", "END"), ("d", "END")];
    let graph = plain("g", &edges).compile().unwrap();
    let mut run = Driver::start_with(&graph, json!({}), 3);
    run.run_node("a");
    assert_eq!(run.ready(), ["b", "c"], "two steps are left");
    run.run_node("c");
    assert_eq!(run.ready(), ["b"]);
    assert_eq!(run.run_to_failure().code, ReasonCode::StepLimit);
    assert_eq!(run.progress.steps(), 3);
    run.redrive(Some(4));
    assert_eq!(run.run_to_end().walked(), "a b c d");
}

/// How the node that returns this update fails, over the state `{ "old": 1 }`.
fn failure(update: fn() -> Update) -> String {
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("a", move |_: NodeContext, _: State| async move { Ok::<_, NodeError>(update()) })
        .set_entry_point("a")
        .set_finish_point("a")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({ "old": 1 }));
    let reason = run.run_to_failure();
    assert_eq!(run.progress.state(), &State::new().with("old", 1), "the state before stands");
    reason.message
}

#[test]
fn what_json_cannot_hold_is_refused_with_its_path() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(holdpoint_graph::strict::to_value(&bad).is_err());
    }
    let nan = failure(|| Update::new().set("ok", 7).set("list", vec![(1.0, f64::NAN)]));
    assert_eq!(nan, "E_NUMBER: list[0][1] is not a finite number");
    let map = std::collections::BTreeMap::from([("x", f32::INFINITY)]);
    let part = failure(|| Update::part(&std::collections::BTreeMap::from([("x", f64::NAN)])));
    assert_eq!(part, "E_NUMBER: the update.x is not a finite number");
    assert!(holdpoint_graph::strict::to_value(&map).is_err());
    let wide = failure(|| Update::new().set("n", u128::MAX));
    assert!(wide.starts_with("E_NUMBER: n "), "{wide}");
    assert!(failure(|| Update::part(&7)).starts_with("E_TYPE"));
}

/// `levels` lists inside one another.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]))
}

#[test]
fn depth_is_counted_from_the_states_root() {
    let fits = |update: fn() -> Update| {
        let graph = StateGraph::new("g")
            .with_schema(lists())
            .add_node(
                "a",
                move |_: NodeContext, _: State| async move { Ok::<_, NodeError>(update()) },
            )
            .set_entry_point("a")
            .set_finish_point("a");
        Driver::start(&graph.compile().unwrap(), json!({})).run() == Next::Finished
    };
    assert!(fits(|| Update::new().set("k", nested(JSON_DEPTH_MAX - 1))));
    assert!(fits(|| Update::new().set("items", vec![nested(JSON_DEPTH_MAX - 2)])));
    let deep = failure(|| Update::new().set("k", nested(JSON_DEPTH_MAX)));
    assert!(deep.starts_with("E_DEPTH: k[0][0][0]"), "{deep}");
    let deep = failure(|| Update::new().set("items", vec![json!(1), nested(JSON_DEPTH_MAX - 1)]));
    assert!(deep.starts_with("E_DEPTH: items[1][0]"), "{deep}");
    let deep = failure(|| Update::new().set("k", nested(JSON_DEPTH_MAX + 1)));
    assert!(deep.starts_with("E_DEPTH: k[0]"), "{deep}");
}

#[test]
fn the_size_of_the_state_is_exact_and_the_largest_key_is_named() {
    let fits = "x".repeat(STATE_BYTES_MAX - r#"{"k":"","old":1}"#.len());
    let sized = |text: String| {
        let node = move |_: NodeContext, _: State| {
            let text = text.clone();
            async move { Ok::<_, NodeError>(Update::new().set("k", text)) }
        };
        let graph = StateGraph::new("g").add_node("a", node).set_entry_point("a");
        let graph = graph.set_finish_point("a").compile().unwrap();
        let mut run = Driver::start(&graph, json!({ "old": 1 }));
        run.run();
        run.progress.reason().map(|reason| reason.message.clone())
    };
    assert_eq!(sized(fits.clone()), None);
    let reason = sized(format!("{fits}x")).unwrap();
    assert!(reason.starts_with("E_TOO_LARGE") && reason.contains("\"k\""), "{reason}");
}

#[test]
fn branches_that_fit_one_by_one_must_fit_together() {
    let half = |_: NodeContext, _: State| async {
        Ok::<_, NodeError>(Update::new().set("items", "x".repeat(STATE_BYTES_MAX / 2)))
    };
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_router("a")
        .add_node("b", half)
        .add_node("c", half)
        .set_entry_point("a")
        .add_edge("a", "b")
        .add_edge("a", "c")
        .set_finish_point("b")
        .set_finish_point("c")
        .compile()
        .unwrap();
    let mut run = Driver::unchecked(&graph, json!({}), 10);
    let reason = run.run_to_failure();
    assert!(reason.message.starts_with("E_TOO_LARGE"), "{}", reason.message);
}

#[test]
fn a_fork_that_is_too_wide_or_too_deep_fails_its_route() {
    let mut run = Driver::start(&crate::sends::fan(), json!({ "n": FORK_WIDTH_MAX + 1 }));
    let reason = run.run_to_failure();
    assert!(reason.message.contains("the limit is 10000"), "{}", reason.message);
    assert_eq!(reason.node.as_deref(), Some("plan"));

    // Every level forks into the next one and a leaf; they join at the end.
    let mut graph = StateGraph::new("deep").add_node("leaf0", step).set_entry_point("f0");
    for level in 0..40 {
        let (here, next, leaf) =
            (format!("f{level}"), format!("f{}", level + 1), format!("leaf{}", level + 1));
        graph = graph.add_router(&here).add_node(&leaf, step).set_finish_point(&leaf);
        graph = graph.add_edge(&here, next).add_edge(&here, leaf);
    }
    let graph = graph.add_router("f40").add_edge("f40", "leaf0").set_finish_point("leaf0");
    let graph = graph.compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let reason = run.run_to_failure();
    assert!(
        reason.message.contains(&format!("{} forks deep", FORK_DEPTH_MAX + 1)),
        "{}",
        reason.message
    );
}
