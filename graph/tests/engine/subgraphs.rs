//! Sub-graphs: inlined, with everything of the engine inside them.

use holdpoint_graph::{
    AppendReducer, CompiledGraph, END, Gate, KeyMapping, NodeContext, NodeError, NodeOptions,
    Question, ReasonCode, Send, State, StateGraph, StateSchema, Update,
};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, plain, step};

/// s0 → ask (gate) → s1.
fn review() -> CompiledGraph {
    let gate = NodeOptions::new().gate(Gate::new("ask", Question::new("Good?")));
    plain("review", &[("s0", "ask2")])
        .add_node_with("ask", gate, step)
        .add_edge("ask2", "ask")
        .add_edge("ask", "s1")
        .add_node("s1", step)
        .set_finish_point("s1")
        .compile()
        .unwrap()
}

/// A graph of one sub-graph between p0 and p1.
fn around(id: &str, inner: &CompiledGraph, mapping: KeyMapping) -> StateGraph {
    StateGraph::new(id)
        .with_schema(lists())
        .add_node("p0", step)
        .add_subgraph("sub", inner, mapping)
        .add_node("p1", step)
        .set_entry_point("p0")
        .add_edge("p0", "sub")
        .add_edge("sub", "p1")
        .set_finish_point("p1")
}

#[test]
fn a_gate_inside_parks_under_its_full_name() {
    let graph = around("g", &review(), KeyMapping::new()).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run();
    let open = run.progress.question(&run.asked()).unwrap();
    assert_eq!(open.gate.as_deref(), Some("sub/ask"));
    assert_eq!(run.walked(), "p0 sub/s0 sub/ask2", "checkpoints lie inside");
    run.answer(&run.asked(), json!({ "approve": true }));
    assert_eq!(run.run_to_end().walked(), "p0 sub/s0 sub/ask2 sub/ask sub/s1 p1");
}

#[test]
fn sub_graphs_nest_and_a_sub_graph_may_be_used_twice() {
    let middle = around("middle", &plain("i", &[("x", "END")]).compile().unwrap(), mapped());
    let middle = middle.compile().unwrap();
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_subgraph("one", &middle, KeyMapping::new())
        .subgraph_node("two", &middle, KeyMapping::new())
        .set_entry_point("one")
        .add_edge("one", "two")
        .set_finish_point("two")
        .compile()
        .unwrap();
    let expect = "one/p0 one/sub/x one/p1 two/p0 two/sub/x two/p1";
    assert_eq!(Driver::start(&graph, json!({})).run_to_end().walked(), expect);
    let clusters: Vec<(&str, &str)> = graph.subgraphs().collect();
    assert_eq!(
        clusters,
        [("one", "middle"), ("one/sub", "i"), ("two", "middle"), ("two/sub", "i")]
    );
}

fn mapped() -> KeyMapping {
    KeyMapping::new().map("order_text", "text")
}

/// Writes what it sees of the state to `seen`, and changes `text`.
fn seeing() -> CompiledGraph {
    let node = |_: NodeContext, state: State| async move {
        let text = state.read::<Option<String>>("text")?.unwrap_or_default();
        let seen = state.clone().into_json();
        Ok::<_, NodeError>(Update::new().set("seen", seen).set("text", format!("{text}!")))
    };
    let graph = StateGraph::new("seeing").add_node("x", node).set_entry_point("x");
    graph.set_finish_point("x").compile().unwrap()
}

fn ran(graph: StateGraph, input: Value) -> Value {
    let graph = graph.compile().unwrap();
    let mut run = Driver::start(&graph, input);
    run.run_to_end();
    run.progress.state().clone().into_json()
}

#[test]
fn keys_are_mapped_in_and_out() {
    let graph = around("g", &seeing(), mapped());
    let state = ran(graph, json!({ "order_text": "a", "text": "outer", "other": 1 }));
    assert_eq!(state["seen"], json!({ "text": "a", "other": 1, "path": ["p0"] }));
    assert_eq!((&state["order_text"], &state["text"]), (&json!("a!"), &json!("outer")));
}

#[test]
fn a_key_with_the_name_of_a_mapped_one_is_the_sub_graphs_own() {
    let node = |_: NodeContext, state: State| async move {
        let seen = state.get("order_text").cloned();
        Ok::<_, NodeError>(Update::new().set("order_text", "mine").set("was", seen))
    };
    let inner = StateGraph::new("i")
        .add_node("x", node)
        .add_node("y", node)
        .set_entry_point("x")
        .add_edge("x", "y")
        .set_finish_point("y")
        .compile()
        .unwrap();
    let state = ran(around("g", &inner, mapped()), json!({ "order_text": "a" }));
    assert_eq!(state["order_text"], json!("a"), "the outer key is untouched");
    assert_eq!(state["was"], json!("mine"), "the inner one is kept between its nodes");
}

#[test]
fn a_whole_state_inside_touches_only_what_is_seen() {
    let node = |_: NodeContext, state: State| async move {
        Ok::<_, NodeError>(state.into_iter().filter(|(key, _)| key != "gone").collect::<State>())
    };
    let inner = StateGraph::new("i").add_node("x", node).set_entry_point("x");
    let inner = inner.set_finish_point("x").compile().unwrap();
    let mapping = KeyMapping::new().map("outer_gone", "gone");
    let state = ran(around("g", &inner, mapping), json!({ "outer_gone": 1, "gone": 2, "k": 3 }));
    assert_eq!(state, json!({ "gone": 2, "k": 3, "path": ["p0", "p1"] }));
}

#[test]
fn reducers_come_along_whatever_the_order_of_the_calls() {
    let adds =
        |_: NodeContext, _: State| async { Ok::<_, NodeError>(Update::new().set("log", "x")) };
    let inner = StateGraph::new("i")
        .with_schema(StateSchema::new().with("log", AppendReducer))
        .add_node("x", adds)
        .set_entry_point("x")
        .set_finish_point("x")
        .compile()
        .unwrap();
    let mapping = || KeyMapping::new().map("outer_log", "log");
    let graph = around("g", &inner, mapping()).with_schema(lists());
    assert_eq!(ran(graph, json!({ "outer_log": ["a"] }))["outer_log"], json!(["a", "x"]));
    let differs = StateSchema::new().with("outer_log", holdpoint_graph::MergeMapReducer);
    let graph = around("g", &inner, mapping()).with_schema(differs).compile().unwrap();
    let codes: Vec<&str> = graph.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["two_reducers"]);
}

#[test]
fn a_cycle_inside_ends_at_the_step_limit() {
    let inner = plain("i", &[("x", "y")]).add_conditional_edge("y", |_| "x", ["x", END]);
    let graph = around("g", &inner.compile().unwrap(), KeyMapping::new()).compile().unwrap();
    let mut run = Driver::start_with(&graph, json!({}), 20);
    let reason = run.run_to_failure();
    assert_eq!(reason.code, ReasonCode::StepLimit);
    assert!(reason.message.contains("sub/x"), "{}", reason.message);
    assert_eq!(run.progress.steps(), 20);
}

/// A sub-graph of two nodes that can also end in its first.
fn early() -> CompiledGraph {
    StateGraph::new("early")
        .with_schema(lists())
        .add_node("x", step)
        .add_node("y", step)
        .set_entry_point("x")
        .add_conditional_edge(
            "x",
            |state| if state.contains_key("long") { "y" } else { "" },
            ["y", END],
        )
        .set_finish_point("y")
        .compile()
        .unwrap()
}

#[test]
fn an_exit_may_lead_into_a_fork() {
    let graph = || {
        StateGraph::new("g")
            .with_schema(lists())
            .add_subgraph("sub", &early(), KeyMapping::new())
            .add_node("a", step)
            .add_node("b", step)
            .add_node("end", step)
            .set_entry_point("sub")
            .add_edge("sub", "a")
            .add_edge("sub", "b")
            .add_edge("a", "end")
            .add_edge("b", "end")
            .set_finish_point("end")
    };
    assert_eq!(ran(graph(), json!({}))["path"], json!(["sub/x", "a", "b", "end"]));
    let long = ran(graph(), json!({ "long": 1 }));
    assert_eq!(long["path"], json!(["sub/x", "sub/y", "a", "b", "end"]));
}

#[test]
fn an_exit_may_lead_into_a_route_and_back() {
    let again = |state: &State| match state["path"].as_array().map(Vec::len) {
        Some(1) => "sub",
        _ => "end",
    };
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_subgraph("sub", &early(), KeyMapping::new())
        .add_node("end", step)
        .set_entry_point("sub")
        .add_conditional_edge("sub", again, ["sub", "end"])
        .set_finish_point("end");
    assert_eq!(ran(graph, json!({}))["path"], json!(["sub/x", "sub/x", "end"]));
}

#[test]
fn an_entry_may_be_a_branch_a_route_or_a_send() {
    let graph = |route: fn(&State) -> holdpoint_graph::Answered| {
        StateGraph::new("g")
            .with_schema(lists())
            .add_node("a", step)
            .add_subgraph("sub", &early(), KeyMapping::new())
            .add_node("b", step)
            .add_node("end", step)
            .set_entry_point("a")
            .add_fan_edge("a", route, ["sub", "b"])
            .add_edge("sub", "end")
            .add_edge("b", "end")
            .set_finish_point("end")
    };
    let path = |route| ran(graph(route), json!({}))["path"].clone();
    assert_eq!(path(|_| vec!["sub", "b"].into()), json!(["a", "sub/x", "b", "end"]));
    assert_eq!(path(|_| "sub".into()), json!(["a", "sub/x", "end"]));
    let sends = |_: &State| -> holdpoint_graph::Answered {
        vec![Send::new("sub", json!({ "long": 1 })), Send::new("sub", json!({}))].into()
    };
    assert_eq!(path(sends), json!(["a", "sub/x", "sub/y", "sub/x", "end"]));
}

#[test]
fn a_fork_and_sends_inside_join_inside() {
    let sends = |state: &State| -> Vec<Send> {
        let n = state.read::<i64>("count").unwrap();
        (0..n).map(|i| Send::new("w", json!({ "index": i }))).collect()
    };
    let worker = |_: NodeContext, state: State| async move {
        Ok::<_, NodeError>(Update::new().set("items", state.read::<i64>("index")?))
    };
    let inner = StateGraph::new("i")
        .with_schema(lists())
        .add_node("plan", step)
        .add_node("w", worker)
        .set_entry_point("plan")
        .add_fan_edge("plan", sends, ["w"])
        .set_finish_point("w")
        .compile()
        .unwrap();
    let mapping = KeyMapping::new().map("n", "count").map("at", "index");
    let state = ran(around("g", &inner, mapping), json!({ "n": 3, "at": "outer" }));
    assert_eq!(state["items"], json!([0, 1, 2]));
    assert_eq!((&state["at"], &state["path"]), (&json!("outer"), &json!(["p0", "sub/plan", "p1"])));
}

#[test]
fn gotos_and_rejections_stay_inside_or_leave_by_the_exit() {
    let goto = |_: NodeContext, _: State| async {
        Ok::<_, NodeError>(Update::new().set("path", "x").goto(END))
    };
    let gate = Gate::new("gate", Question::new("?")).reject_to(END);
    let inner = StateGraph::new("i")
        .with_schema(lists())
        .add_node_with("g", NodeOptions::new().gate(gate), step)
        .add_node_with("x", NodeOptions::new().goto_targets([END]), goto)
        .set_entry_point("x")
        .add_edge("x", "g")
        .set_finish_point("g")
        .compile()
        .unwrap();
    let state = ran(around("g", &inner, KeyMapping::new()), json!({}));
    assert_eq!(state["path"], json!(["p0", "x", "p1"]));
    let edges = around("g", &inner, KeyMapping::new()).compile().unwrap();
    assert_eq!(edges.node("sub/g").unwrap().gate().unwrap().target("reject"), Some("p1"));
}

#[test]
fn an_inner_node_may_be_called_exit() {
    let inner = plain("i", &[("exit", "END")]).compile().unwrap();
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_subgraph("sub", &inner, KeyMapping::new())
        .set_entry_point("sub")
        .add_conditional_edge("sub", |_| END, [END]);
    assert_eq!(ran(graph, json!({}))["path"], json!(["sub/exit"]));
}

#[test]
fn the_mapping_is_part_of_the_fingerprint() {
    let print = |mapping| {
        let graph = around("g", &seeing(), mapping).compile().unwrap();
        graph.fingerprint().to_string()
    };
    assert_eq!(print(mapped()), print(mapped()));
    assert_ne!(print(mapped()), print(KeyMapping::new()));
}
