//! Graphs made of functions: entry points, tasks, chains, fan-outs.

use std::sync::Arc;

use holdpoint_graph::{
    Event, FunctionalError, MergeFunc, NodeContext, NodeError, NodeFunc, State, StateGraph,
    TaskFunc, Update, fan_out, merge_all, register_entrypoint, register_task, task_graph,
};
use serde_json::{Value, json};

use crate::driver::Driver;

async fn double(_: NodeContext, input: Value) -> Result<Value, NodeError> {
    Ok((input.as_i64().unwrap_or(0) * 2).into())
}

#[test]
fn an_entry_point_is_a_graph_of_one_node() {
    let graph = register_entrypoint("double", double).unwrap();
    let mut run = Driver::start(&graph, json!({ "input": 21 }));
    run.run_to_end();
    assert_eq!(run.value("output"), json!(42));
    assert_eq!(register_entrypoint("", double).unwrap_err(), FunctionalError::EmptyName);
    assert!(matches!(register_entrypoint("a b", double), Err(FunctionalError::Graph(_))));
}

#[test]
fn a_task_is_a_recorded_step_and_leaves_the_state_clean() {
    let graph = StateGraph::new("g")
        .add_node("a", register_task("double", double).unwrap())
        .set_entry_point("a")
        .set_finish_point("a")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({ "input": 4 }));
    run.run_to_end();
    assert_eq!(run.progress.state().clone().into_json(), json!({ "input": 4, "output": 8 }));
    let is_step = |event: &&Event| matches!(event, Event::StepRecorded { .. });
    let Some(Event::StepRecorded { key, value, .. }) = run.events.iter().find(is_step) else {
        panic!("the step is recorded")
    };
    assert!(key.starts_with("double "), "{key}");
    assert_eq!(*value, json!(8));
    assert!(register_task("", double).is_err());
}

#[test]
fn a_task_graph_chains_in_the_given_order() {
    let named = |name: &'static str| -> TaskFunc {
        Arc::new(move |_, input: Value| {
            Box::pin(async move { Ok(json!(format!("{}{name}", input.as_str().unwrap()))) })
        })
    };
    for _ in 0..50 {
        let tasks = ["c", "a", "b"].map(|name| (name, named(name))).into();
        let mut run = Driver::start(&task_graph("chain", tasks).unwrap(), json!({ "input": "-" }));
        run.run_to_end();
        assert_eq!(run.value("output"), json!("-cab"));
    }
    let twice = vec![("a", named("a")), ("a", named("a"))];
    assert_eq!(task_graph("t", twice).unwrap_err(), FunctionalError::DoubleName("a".into()));
    assert_eq!(task_graph("t", vec![]).unwrap_err(), FunctionalError::NoTasks("t".into()));
}

fn branch(update: fn(&State) -> Update) -> NodeFunc {
    Arc::new(move |_, state: State| {
        let update = update(&state);
        Box::pin(async move { Ok(update) })
    })
}

fn fanned(merge: MergeFunc, branches: Vec<NodeFunc>, input: Value) -> Driver {
    let graph = fan_out("fan", branches, merge).unwrap();
    let mut first = Driver::start(&graph, input.clone());
    first.run();
    let mut last = Driver::start(&graph, input);
    last.run_by(|count| count - 1);
    assert_eq!(first.progress.state(), last.progress.state());
    first
}

#[test]
fn merge_all_counts_changed_keys_only() {
    let branches = vec![
        branch(|_| Update::new().set("a", 1).set("both", "first")),
        branch(|_| Update::new().set("both", "last")),
        branch(|state| Update::whole(state.clone())),
        branch(|_| Update::new().unset("gone")),
    ];
    let run = fanned(Arc::new(merge_all), branches, json!({ "a": 0, "gone": 1, "kept": 2 }));
    let expect = json!({ "a": 1, "both": "last", "kept": 2 });
    assert_eq!(run.progress.state().clone().into_json(), expect, "the hidden key is gone too");
}

#[test]
fn a_merge_gets_the_state_before_and_whole_branch_states_in_order() {
    let merge: MergeFunc = Arc::new(|original, results| {
        let all: Vec<Value> = results.iter().map(|state| state.clone().into_json()).collect();
        Ok(original.clone().with("all", all))
    });
    let branches =
        vec![branch(|_| Update::new().set("x", 1)), branch(|_| Update::whole(State::new()))];
    let run = fanned(merge, branches, json!({ "k": 0 }));
    assert_eq!(run.value("all"), json!([{ "k": 0, "x": 1 }, {}]));
}

#[test]
fn a_failed_branch_is_not_merged_and_the_others_are_not_repeated() {
    let bad: NodeFunc = Arc::new(|_, state: State| {
        let is_fixed = state.contains_key("fixed");
        Box::pin(async move {
            if is_fixed { Ok(Update::new()) } else { Err(NodeError::permanent("broken")) }
        })
    });
    let graph = fan_out("f", vec![branch(|_| Update::new().set("a", 1)), bad], Arc::new(merge_all));
    let mut run = Driver::start(&graph.unwrap(), json!({}));
    assert_eq!(run.run_to_failure().node.as_deref(), Some("branch-1"));
    run.redrive(None);
    assert_eq!(run.ready(), ["branch-1"]);
    let nan = branch(|_| Update::new().set("x", f64::NAN));
    let run = fanned(Arc::new(merge_all), vec![nan], json!({}));
    assert!(run.progress.reason().unwrap().message.contains("x is not a finite number"));
}

#[test]
fn a_merge_that_fails_fails_the_join() {
    let merge: MergeFunc = Arc::new(|_, _| Err(NodeError::permanent("cannot merge")));
    let run = fanned(merge, vec![branch(|_| Update::new())], json!({}));
    assert_eq!(run.progress.reason().unwrap().node.as_deref(), Some("join"));
    let none = fan_out("f", vec![], Arc::new(merge_all));
    assert_eq!(none.unwrap_err(), FunctionalError::NoTasks("f".into()));
}
