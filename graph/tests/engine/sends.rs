//! Lists of sends: a branch for each, in order, with its own input.

use holdpoint_graph::{
    CompiledGraph, END, NodeContext, NodeError, Send, State, StateGraph, Update,
};
use serde_json::json;

use crate::driver::{Driver, lists, step};

async fn worker(_: NodeContext, state: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("items", state.read::<i64>("index")?).set("path", "w"))
}

/// plan → n times worker → collect.
pub(crate) fn fan() -> CompiledGraph {
    let sends = |state: &State| -> Vec<Send> {
        let n = state.read::<i64>("n").unwrap();
        (0..n).map(|index| Send::new("worker", json!({ "index": index }))).collect()
    };
    let graph = StateGraph::new("fan").with_schema(lists()).add_node("plan", step);
    graph
        .add_node("worker", worker)
        .add_node("collect", step)
        .set_entry_point("plan")
        .add_fan_edge("plan", sends, ["worker"])
        .add_edge("worker", "collect")
        .set_finish_point("collect")
        .compile()
        .unwrap()
}

#[test]
fn results_come_in_the_order_of_the_list() {
    for turn in 0..3 {
        let mut run = Driver::start(&fan(), json!({ "n": 7 }));
        let mut seed = turn;
        run.run_by(|_| {
            seed = seed * 31 + turn;
            seed
        });
        assert_eq!(run.value("items"), json!([0, 1, 2, 3, 4, 5, 6]));
        assert_eq!((run.ran("worker"), run.ran("collect")), (7, 1));
        assert_eq!(run.value("index"), json!(null), "an input is the branch's own");
    }
}

#[test]
fn one_send_is_a_branch_and_none_goes_to_the_join() {
    let mut run = Driver::start(&fan(), json!({ "n": 1 }));
    assert_eq!(run.run_to_end().walked(), "plan w collect");
    let mut run = Driver::start(&fan(), json!({ "n": 0 }));
    assert_eq!(run.run_to_end().walked(), "plan collect");
}

#[test]
fn an_empty_list_goes_to_the_join_that_is_a_target_itself() {
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("plan", step)
        .add_node("worker", step)
        .add_node("collect", step)
        .add_node("next", step)
        .set_entry_point("plan")
        .add_fan_edge("plan", |_| Vec::<Send>::new(), ["worker", "collect"])
        .add_edge("worker", "collect")
        .add_edge("collect", "next")
        .set_finish_point("next")
        .compile()
        .unwrap();
    assert_eq!(Driver::start(&graph, json!({})).run_to_end().walked(), "plan collect next");
}

#[test]
fn sends_to_several_nodes_join_early_where_they_meet() {
    let sends = |_: &State| -> Vec<Send> {
        ["x", "w", "v", "w"].map(|node| Send::new(node, json!({}))).into()
    };
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("plan", step)
        .add_node("w", step)
        .add_node("v", step)
        .add_node("x", step)
        .add_node("m", step)
        .add_node("end", step)
        .set_entry_point("plan")
        .add_fan_edge("plan", sends, ["w", "v", "x"])
        .add_edge("w", "m")
        .add_edge("v", "m")
        .add_edge("m", "end")
        .add_edge("x", "end")
        .set_finish_point("end")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    assert_eq!(run.run_to_end().walked(), "plan x w v w m end", "m runs once");
    let mut last = Driver::start(&graph, json!({}));
    last.run_by(|count| count - 1);
    assert_eq!(last.progress.state(), run.progress.state());
}

#[test]
fn a_send_cannot_go_to_the_end_and_brings_an_object() {
    let failure = |send: fn(&State) -> Vec<Send>| {
        let graph = StateGraph::new("g")
            .add_node("plan", step)
            .add_node("w", step)
            .set_entry_point("plan")
            .add_fan_edge("plan", send, ["w", END])
            .set_finish_point("w")
            .compile()
            .unwrap();
        Driver::start(&graph, json!({})).run_to_failure().message
    };
    assert!(failure(|_| vec![Send::new(END, json!({}))]).contains("cannot go to the end"));
    assert!(failure(|_| vec![Send::new("w", 7)]).contains("must be an object, not 7"));
    let nan =
        failure(|_| vec![Send::new("w", std::collections::BTreeMap::from([("x", f64::NAN)]))]);
    assert!(nan.contains("the input of a Send.x is not a finite number"), "{nan}");
}

#[test]
fn a_send_over_a_list_does_not_write_it_back() {
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("plan", step)
        .add_node("w", |_: NodeContext, state: State| async move { Ok::<_, NodeError>(state) })
        .set_entry_point("plan")
        .add_fan_edge("plan", |_| vec![Send::new("w", json!({ "items": ["mine"] }))], ["w"])
        .set_finish_point("w")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({ "items": ["all"] }));
    run.run_to_end();
    assert_eq!(run.value("items"), json!(["all"]));
}
