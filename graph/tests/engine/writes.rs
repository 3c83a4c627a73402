//! What branches write: conflicts, reducers, whole states, and what is no write at all.

use holdpoint_graph::{
    Event, MergeMapReducer, NodeContext, NodeError, Patch, ReasonCode, ReducerFunc, State,
    StateGraph, StateSchema, Update,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, plain};

/// start → one node for each function → join.
fn fork(schema: StateSchema, branches: Vec<fn(&State) -> Update>) -> StateGraph {
    let mut graph = StateGraph::new("fork")
        .with_schema(schema)
        .add_router("start")
        .set_entry_point("start")
        .add_node("join", |_: NodeContext, _: State| async { Ok::<_, NodeError>(()) })
        .set_finish_point("join");
    for (index, branch) in branches.into_iter().enumerate() {
        let name = format!("b{index}");
        let node =
            move |_: NodeContext, state: State| async move { Ok::<_, NodeError>(branch(&state)) };
        graph = graph.add_node(&name, node).add_edge("start", &name).add_edge(&name, "join");
    }
    graph
}

/// The state at the end, which is the same whichever branch is first.
fn merged(schema: StateSchema, input: Value, branches: Vec<fn(&State) -> Update>) -> Value {
    let graph = fork(schema, branches).compile().unwrap();
    let mut first = Driver::start(&graph, input.clone());
    first.run_to_end();
    let mut last = Driver::start(&graph, input);
    last.run_by(|count| count - 1);
    assert_eq!(first.progress.state(), last.progress.state());
    first.progress.state().clone().into_json()
}

fn sum() -> ReducerFunc {
    ReducerFunc::new("sum", |old, new| {
        (old.and_then(Value::as_i64).unwrap_or(0) + new.as_i64().unwrap()).into()
    })
}

#[test]
fn two_different_replacements_are_a_conflict_that_names_key_and_nodes() {
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("v", 1).set("other", 1), |_| Update::new().set("v", 2)];
    let graph = fork(lists(), branches).compile().unwrap();
    for turn in 0..2 {
        let mut run = Driver::start(&graph, json!({ "v": 0 }));
        run.run_by(|count| turn * (count - 1));
        let reason = run.progress.reason().unwrap().clone();
        assert_eq!(
            (reason.code, reason.node.as_deref()),
            (ReasonCode::WriteConflict, Some("join"))
        );
        for part in ["\"v\"", "\"b0\"", "\"b1\""] {
            assert!(reason.message.contains(part), "{}", reason.message);
        }
        assert_eq!(run.progress.state(), &State::new().with("v", 0), "nothing of it is written");
    }
}

#[test]
fn a_conflict_of_three_names_only_those_who_wrote() {
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("v", 1), |_| Update::new().set("w", 2), |_| {
            Update::new().unset("v")
        }];
    let graph = fork(lists(), branches).compile().unwrap();
    let reason = Driver::start(&graph, json!({ "v": 0 })).run_to_failure();
    assert!(reason.message.contains("\"b0\" and \"b2\""), "{}", reason.message);
}

#[test]
fn equal_replacements_and_unchanged_values_are_no_conflict() {
    let same: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("v", 7), |_| Update::new().set("v", 7)];
    assert_eq!(merged(lists(), json!({}), same), json!({ "v": 7 }));
    let unchanged: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("v", 7), |state| Update::new().set("v", state.get("v"))];
    assert_eq!(merged(lists(), json!({ "v": 0 }), unchanged), json!({ "v": 7 }));
    let whole: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("v", 7), |state| Update::whole(state.clone().with("w", 1))];
    assert_eq!(merged(lists(), json!({ "v": 0 }), whole), json!({ "v": 7, "w": 1 }));
    let both_take_away: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().unset("v"), |_| Update::new().unset("v")];
    assert_eq!(merged(lists(), json!({ "v": 0 }), both_take_away), json!({}));
}

#[test]
fn appends_come_in_the_order_of_the_branches() {
    let branches: Vec<fn(&State) -> Update> = vec![
        |_| Update::new().set("items", json!(["a", "b"])),
        |_| Update::new().set("items", "c"),
        |_| Update::new().set("items", json!([["d"]])),
    ];
    let merged = merged(lists(), json!({ "items": [0] }), branches);
    assert_eq!(merged, json!({ "items": [0, "a", "b", "c", ["d"]] }));
}

#[test]
fn an_append_to_what_is_no_list_begins_one() {
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("items", "a"), |_| Update::new().set("items", "b")];
    let graph = fork(lists(), branches).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.apply(Event::StateEdited {
        patches: vec![Patch::set("items", "text")],
        by: "a".into(),
        shown: vec![],
    });
    run.run_to_end();
    assert_eq!(run.value("items"), json!(["a", "b"]));
}

#[test]
fn merges_of_maps_are_put_together() {
    let schema = || StateSchema::new().with("m", MergeMapReducer);
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("m", json!({ "a": 1, "both": "first" })), |_| {
            Update::new().set("m", json!({ "b": 2, "both": "last" }))
        }];
    let expect = json!({ "m": { "a": 1, "b": 2, "both": "last", "old": 0 } });
    assert_eq!(merged(schema(), json!({ "m": { "old": 0 } }), branches.clone()), expect);
    let expect = json!({ "m": { "a": 1, "b": 2, "both": "last" } });
    assert_eq!(merged(schema(), json!({}), branches), expect);
}

#[test]
fn a_custom_reducer_is_asked_again_at_the_join() {
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("n", 1), |_| Update::new().set("n", 10), |_| {
            Update::new().set("n", 100)
        }];
    let schema = StateSchema::new().with("n", sum());
    assert_eq!(merged(schema, json!({ "n": 1_000 }), branches), json!({ "n": 1_111 }));
}

#[test]
fn a_reducer_that_panics_fails_the_node_or_the_join() {
    let picky = || {
        ReducerFunc::new("picky", |old, new| match old {
            Some(_) => panic!("no more"),
            None => new,
        })
    };
    let schema = StateSchema::new().with("n", picky());
    let branches: Vec<fn(&State) -> Update> =
        vec![|_| Update::new().set("n", 1), |_| Update::new().set("n", 2)];
    let graph = fork(schema.clone(), branches.clone()).compile().unwrap();
    let reason = Driver::start(&graph, json!({})).run_to_failure();
    assert!(reason.message.contains("a reducer panicked: no more"), "{}", reason.message);
    let mut run = Driver::start(&graph, json!({ "n": 0 }));
    let reason = run.run_to_failure();
    assert_eq!(reason.node.as_deref(), Some("b0"), "{}", reason.message);
    assert_eq!(run.value("n"), json!(0), "the state before stands");
}

/// What a chain of one node with this update writes.
fn patches(input: Value, node: fn(&State) -> Update) -> Vec<Patch> {
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node("a", move |_: NodeContext, s: State| async move { Ok::<_, NodeError>(node(&s)) })
        .set_entry_point("a")
        .set_finish_point("a")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, input);
    run.run_to_end();
    let is_end = |event: &&Event| matches!(event, Event::NodeCompleted { .. });
    let Some(Event::NodeCompleted { patches, .. }) = run.events.iter().find(is_end) else {
        panic!("the node completed")
    };
    patches.clone()
}

#[test]
fn a_whole_state_sets_what_changed_and_takes_away_what_is_missing() {
    let patches = patches(json!({ "a": 1, "b": 2, "items": [1] }), |state| {
        let kept = state.clone().into_iter().filter(|(key, _)| key != "a");
        Update::whole(kept.collect::<State>().with("b", 3).with("items", json!([1, 2])))
    });
    let expect = json!([
        { "k": "b", "o": { "set": 3 } },
        { "k": "items", "o": { "set": [1, 2] } },
        { "k": "a", "o": "unset" },
    ]);
    assert_eq!(serde_json::to_value(patches).unwrap(), expect);
}

#[test]
fn a_typed_part_leaves_other_keys_alone() {
    #[derive(Serialize, Deserialize)]
    struct Part {
        a: i32,
    }
    let patches = patches(json!({ "a": 1, "b": 2 }), |_| Update::part(&Part { a: 5 }));
    assert_eq!(serde_json::to_value(patches).unwrap(), json!([{ "k": "a", "o": { "set": 5 } }]));
}

#[test]
fn what_changes_nothing_is_no_write() {
    let input = json!({ "a": 1, "items": [1] });
    assert_eq!(patches(input.clone(), |_| Update::new().set("a", 1)), []);
    assert_eq!(patches(input.clone(), |_| Update::new().unset("none")), []);
    assert_eq!(patches(input.clone(), |state| Update::whole(state.clone())), []);
    assert_eq!(patches(input.clone(), |_| Update::new().set("items", json!([]))), []);
    // Appending an equal list is a write: an update goes through the reducer.
    assert_eq!(patches(input, |_| Update::new().set("items", json!([1]))).len(), 1);
}

#[test]
fn the_last_word_on_a_key_counts() {
    let input = json!({ "a": 1 });
    let set = patches(input.clone(), |_| Update::new().unset("a").set("a", 2));
    assert_eq!(set, [Patch::set("a", 2)]);
    let unset = patches(input, |_| Update::new().set("a", 2).unset("a"));
    assert_eq!(serde_json::to_value(unset).unwrap(), json!([{ "k": "a", "o": "unset" }]));
}

#[test]
fn a_step_costs_what_it_adds() {
    let input = json!({ "items": vec!["x".repeat(100); 1_000] });
    let patches = patches(input, |_| Update::new().set("items", "y"));
    assert!(serde_json::to_vec(&patches).unwrap().len() < 100);
}

#[test]
fn numbers_keep_their_digits() {
    let numbers = json!({
        "big": 9_007_199_254_740_993_i64, "max": u64::MAX, "min": i64::MIN,
        "tenth": 0.1, "zero": -0.0, "one": 1.0, "int": 1,
        "containers": { "a": [], "o": {}, "n": null, "aa": [[]], "ao": [{}] },
        "nul\u{0}": "a\u{0}b", "text": "\\u0000",
    });
    let graph = plain("g", &[("a", "END")]).compile().unwrap();
    let mut run = Driver::start(&graph, numbers.clone());
    run.run_to_end();
    let text = serde_json::to_string(run.progress.state()).unwrap();
    let with_path = State::from_json(numbers).unwrap().with("path", json!(["a"]));
    assert_eq!(text, serde_json::to_string(&with_path).unwrap());
    assert!(text.contains("\"zero\":-0.0") && text.contains("\"one\":1.0"), "{text}");
}
