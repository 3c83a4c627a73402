//! Compile faults: all at once, each with code, node and fix.

use holdpoint_graph::{
    Code, END, Gate, GraphFaults, KeyMapping, NodeOptions, Question, StateGraph, limits::NODES_MAX,
};
use serde_json::json;

use crate::driver::{plain, step};

fn faults(graph: StateGraph) -> GraphFaults {
    graph.compile().expect_err("the graph has faults")
}

/// The codes and nodes of all faults.
fn check(graph: StateGraph, expect: &[(&str, &str)]) -> GraphFaults {
    let faults = faults(graph);
    let found: Vec<(&str, &str)> =
        faults.faults.iter().map(|fault| (fault.code, fault.node.as_str())).collect();
    assert_eq!(found, expect, "{faults}");
    assert!(faults.faults.iter().all(|fault| !fault.fix.is_empty()), "{faults}");
    faults
}

/// a, then the end.
fn one() -> StateGraph {
    StateGraph::new("g").add_node("a", step).set_entry_point("a").set_finish_point("a")
}

fn with(options: NodeOptions) -> StateGraph {
    let graph = StateGraph::new("g").add_node_with("a", options, step);
    graph.set_entry_point("a").set_finish_point("a")
}

#[test]
fn a_sound_graph_has_none() {
    let graph = one().compile().unwrap();
    assert!(graph.warnings().is_empty());
}

#[test]
fn the_entry_is_checked() {
    let graph = StateGraph::new("g").add_node("a", step).set_finish_point("a");
    check(graph, &[("no_entry", "g")]);
    let graph = StateGraph::new("g").add_node("node", step).set_finish_point("node");
    let faults = check(graph.set_entry_point("nodes"), &[("unknown_entry", "nodes")]);
    assert!(faults.to_string().contains("did you mean \"node\"?"), "{faults}");
    let graph = plain("g", &[("a", "b"), ("b", "END")]).set_entry_point("b");
    check(graph, &[("two_entries", "b")]);
    // The same entry set again is no contradiction.
    assert!(one().set_entry_point("a").compile().is_ok());
}

#[test]
fn ids_are_checked() {
    check(one().add_node("a", step), &[("duplicate_id", "a")]);
    let reserved = plain("g", &[("a", "__start__"), ("__start__", "END")]);
    check(reserved, &[("reserved_id", "__start__")]);
    check(plain("g", &[("a b", "END")]), &[("bad_id", "a b")]);
    check(plain("g", &[("a/b", "END")]), &[("bad_id", "a/b")]);
    check(plain("g", &[("🦀", "END")]), &[("bad_id", "🦀")]);
    check(plain("no id", &[("a", "END")]), &[("bad_id", "no id")]);
}

#[test]
fn edges_are_checked() {
    check(one().add_edge("b", "a"), &[("unknown_source", "b")]);
    let graph = StateGraph::new("g").add_node("a", step).set_entry_point("a").add_edge("a", "b");
    check(graph, &[("unknown_target", "a")]);
    check(one().add_edge("a", "a"), &[("self_edge", "a")]);
    check(one().add_edge("a", END), &[("duplicate_edge", "a")]);
    let back = plain("g", &[("a", "END")]).add_edge("a", "__start__");
    let faults = check(back, &[("unknown_target", "a")]);
    assert!(faults.to_string().contains("set_entry_point"), "{faults}");
}

#[test]
fn routes_are_checked() {
    let start = || StateGraph::new("g").add_node("a", step).set_entry_point("a");
    let none: [&str; 0] = [];
    let graph = start().add_conditional_edge("a", |_| END, none);
    check(graph, &[("no_targets", "a")]);
    let graph = start().add_conditional_edge("a", |_| END, [END, END]);
    check(graph, &[("duplicate_target", "a")]);
    let graph = start().add_conditional_edge("a", |_| END, [END, "ghost"]);
    check(graph, &[("unknown_target", "a")]);
    let route = start().add_conditional_edge("a", |_| END, [END]);
    check(route.clone().set_finish_point("a"), &[("route_and_edge", "a")]);
    check(route.add_conditional_edge("a", |_| END, [END]), &[("two_routes", "a")]);
}

#[test]
fn every_node_is_reached_and_reaches_the_end() {
    let graph = one().add_node("b", step).set_finish_point("b");
    check(graph, &[("unreachable", "b")]);
    let graph = plain("g", &[("a", "b")]);
    let faults = check(graph, &[("dead_end", "b")]);
    assert!(faults.to_string().contains("set_finish_point(\"b\")"), "{faults}");
    let cycle = plain("g", &[("a", "b"), ("b", "a")]);
    check(cycle, &[("no_exit", "a"), ("no_exit", "b")]);
    let legal = StateGraph::new("g").add_node("a", step).add_node("b", step).set_entry_point("a");
    let legal = legal.add_edge("a", "b").add_conditional_edge("b", |_| END, ["a", END]);
    assert!(legal.compile().unwrap().warnings().is_empty());
    let goto = with(NodeOptions::new().goto_targets(["b"])).add_node("b", step);
    assert!(goto.set_finish_point("b").compile().is_ok(), "a goto reaches");
}

#[test]
fn gates_are_checked() {
    let gate = |name: &str, question| with(NodeOptions::new().gate(Gate::new(name, question)));
    check(gate("a b", Question::new("?")), &[("bad_id", "a")]);
    let bad = Question::new("?").schema(json!({ "type": "no such type" }));
    check(gate("a", bad), &[("bad_schema", "a")]);
    let late = Question::new("?").deadline(std::time::Duration::from_secs(1), "no object");
    check(gate("a", late), &[("bad_default", "a")]);
    let ghost = Gate::new("a", Question::new("?")).reject_to("ghost");
    check(with(NodeOptions::new().gate(ghost)), &[("unknown_target", "a")]);
    let two = plain("g", &[("z", "a")])
        .add_node_with("b", NodeOptions::new().gate(Gate::open("same")), step)
        .add_node_with("c", NodeOptions::new().gate(Gate::open("same")), step)
        .add_edge("a", "b")
        .add_edge("b", "c")
        .set_finish_point("c");
    check(two, &[("duplicate_gate", "c")]);
}

#[test]
fn all_faults_come_at_once() {
    let graph = plain("g", &[("start", "work"), ("work", "END"), ("work", "work")])
        .add_node("work", step)
        .add_node("lonely", step)
        .add_edge("wrk", "start")
        .add_edge("start", "ned")
        .set_entry_point("strat");
    let expect = [
        ("duplicate_id", "work"),
        ("unknown_entry", "strat"),
        ("two_entries", "strat"),
        ("self_edge", "work"),
        ("unknown_source", "wrk"),
        ("unknown_target", "start"),
        ("dead_end", "lonely"),
        ("unreachable", "lonely"),
    ];
    let faults = check(graph, &expect);
    insta::assert_snapshot!(faults);
}

#[test]
fn limits_are_faults_with_a_code_of_their_own() {
    let mut graph = one();
    for index in 0..NODES_MAX {
        graph = graph.add_node(format!("n{index}"), step).add_edge("a", format!("n{index}"));
        graph = graph.set_finish_point(format!("n{index}"));
    }
    let faults = faults(graph);
    assert_eq!((faults.code(), faults.faults[0].code), (Code::GraphLimit, "limit"));
}

#[test]
fn a_graph_does_not_contain_itself() {
    let g = one().compile().unwrap();
    let mapping = KeyMapping::new;
    let direct = one().add_subgraph("sub", &g, mapping()).add_node("b", step);
    let direct = direct.add_edge("b", "sub").set_finish_point("sub");
    let direct = faults(direct);
    assert_eq!(direct.code(), Code::GraphCycleSubgraph, "{direct}");
    let around = |id: &str, inner| {
        let graph = StateGraph::new(id).add_subgraph("in", inner, mapping());
        graph.set_entry_point("in").set_finish_point("in")
    };
    let middle = around("h", &g).compile().unwrap();
    assert_eq!(faults(around("g", &middle)).code(), Code::GraphCycleSubgraph);
}

#[test]
fn an_ambiguous_join_is_named_with_its_remedy() {
    // Both branches may come to m, but one has a way around it.
    let graph = plain("g", &[("a", "b"), ("a", "c"), ("c", "m"), ("m", "end"), ("end", "END")])
        .add_conditional_edge("b", |_| "m", ["m", "end"]);
    let faults = check(graph, &[("ambiguous_join", "m")]);
    insta::assert_snapshot!(faults);
}

#[test]
fn an_ambiguous_join_is_reported_beside_other_faults() {
    let graph = plain("g", &[("a", "b"), ("a", "c"), ("c", "m"), ("m", "end"), ("end", "END")])
        .add_conditional_edge("b", |_| "m", ["m", "end"])
        .add_node("lonely", step)
        .set_finish_point("lonely");
    check(graph, &[("unreachable", "lonely"), ("ambiguous_join", "m")]);
}

#[test]
fn a_branch_that_leads_back_before_its_fork_is_ambiguous() {
    let graph = plain("g", &[("a", "b"), ("a", "c"), ("c", "end"), ("end", "END")])
        .add_conditional_edge("b", |_| "end", ["a", "end"]);
    let faults = faults(graph);
    assert!(faults.faults.iter().all(|fault| fault.code == "ambiguous_join"), "{faults}");
}

#[test]
fn names_that_differ_in_case_are_a_warning() {
    let graph = plain("g", &[("node", "Node"), ("Node", "END")]).compile().unwrap();
    let codes: Vec<&str> = graph.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["similar_ids"]);
}

#[test]
fn a_subgraph_is_checked_from_outside_too() {
    let inner = plain("inner", &[("x", "END")]).compile().unwrap();
    let with = || {
        let graph = StateGraph::new("g").add_node("a", step).set_entry_point("a");
        graph.add_subgraph("sub", &inner, KeyMapping::new()).add_edge("a", "sub")
    };
    let faults = check(with(), &[("dead_end", "sub")]);
    assert!(faults.to_string().contains("set_finish_point(\"sub\")"), "{faults}");
    let faults =
        check(with().add_edge("sub", END).add_edge("subb", "a"), &[("unknown_source", "subb")]);
    assert!(faults.to_string().contains("did you mean \"sub\"?"), "{faults}");
    let twice = with().add_subgraph("sub", &inner, KeyMapping::new()).set_finish_point("sub");
    assert!(self::faults(twice).faults.iter().any(|fault| fault.code == "duplicate_id"));
    let doubled = KeyMapping::new().map("a", "x").map("b", "x");
    let graph = StateGraph::new("g").add_subgraph("sub", &inner, doubled);
    check(graph.set_entry_point("sub").set_finish_point("sub"), &[("doubled_key", "sub")]);
}
