//! Graphs with faults.

use holdpoint::{END, Gate, KeyMapping, NodeContext, NodeOptions, Question, State, StateGraph};
use serde_json::json;

use super::Input;

pub(crate) fn make(name: &str) -> Option<Input> {
    graph(name).map(|graph| Input::Graph(Box::new(graph)))
}

/// A node that does nothing.
async fn step(_: NodeContext, _: State) -> Result<(), holdpoint::NodeError> {
    Ok(())
}

fn nodes(names: &[&str]) -> StateGraph {
    names.iter().fold(StateGraph::new("g"), |graph, name| graph.add_node(*name, step))
}

/// `a` alone, from the entry to the end.
fn one() -> StateGraph {
    nodes(&["a"]).set_entry_point("a").set_finish_point("a")
}

fn chain(count: usize) -> StateGraph {
    let name = |n: usize| format!("n{n}");
    let graph = (0..count).fold(StateGraph::new("g"), |graph, n| graph.add_node(name(n), step));
    let graph = (1..count).fold(graph, |graph, n| graph.add_edge(name(n - 1), name(n)));
    graph.set_entry_point(name(0)).set_finish_point(name(count - 1))
}

/// 400 nodes with routes to 250 of them each.
fn dense() -> StateGraph {
    let names: Vec<String> = (0..400).map(|n| format!("n{n}")).collect();
    let graph = names.iter().fold(StateGraph::new("g"), |graph, name| graph.add_node(name, step));
    let targets = || names.iter().take(250).cloned().chain([END.to_owned()]);
    let route = |graph: StateGraph, name| graph.add_conditional_edge(name, |_| END, targets());
    names.iter().fold(graph, route).set_entry_point("n0")
}

/// start → {left, right}, where `left` and `right` may both come to `shared`, and join later.
fn shared() -> StateGraph {
    nodes(&["start", "left", "right", "shared", "end"])
        .add_edge("start", "left")
        .add_edge("start", "right")
        .add_conditional_edge("left", |_| "shared", ["shared", "end"])
        .add_conditional_edge("right", |_| "shared", ["shared", "end"])
        .add_edge("shared", "end")
        .set_entry_point("start")
        .set_finish_point("end")
}

fn graph(name: &str) -> Option<StateGraph> {
    let start = || nodes(&["a"]).set_entry_point("a");
    Some(match name {
        "graph_without_entry" => nodes(&["a"]).set_finish_point("a"),
        "graph_with_unknown_entry" => {
            nodes(&["node"]).set_finish_point("node").set_entry_point("nodes")
        }
        "graph_with_unknown_source" => one().add_edge("b", "a"),
        "graph_with_unknown_target" => start().add_edge("a", "b"),
        "graph_with_reserved_id" => one().add_node("__start__", step).add_edge("__start__", "a"),
        "graph_with_double_id" => one().add_node("a", step),
        "graph_with_hard_id" => one().add_node("a\u{1b}[2J", step),
        "graph_with_all_faults" => nodes(&["a", "a", "__start__", "lost"])
            .set_entry_point("ghost")
            .add_edge("a", "b")
            .add_edge("c", "a")
            .add_edge("__start__", "a"),
        "graph_with_unreachable_node" => one().add_node("b", step).set_finish_point("b"),
        "graph_with_edge_to_itself" => one().add_edge("a", "a"),
        "graph_with_undeclared_route" => start().add_conditional_edge("a", |_| END, [END, "ghost"]),
        "graph_with_route_to_nowhere" => {
            let none: [&str; 0] = [];
            start().add_conditional_edge("a", |_| END, none)
        }
        "graph_with_undeclared_goto" => StateGraph::new("g")
            .add_node_with("a", NodeOptions::new().goto_targets(["ghost"]), step)
            .set_entry_point("a")
            .set_finish_point("a"),
        "graph_with_two_entries" => nodes(&["a", "b"])
            .add_edge("a", "b")
            .set_entry_point("a")
            .set_entry_point("b")
            .set_finish_point("b"),
        "graph_with_no_way_out" => {
            nodes(&["a", "b"]).add_edge("a", "b").add_edge("b", "a").set_entry_point("a")
        }
        "graph_with_bad_schema" => {
            let gate = Gate::new("a", Question::new("?").schema(json!({ "type": 7 })));
            StateGraph::new("g")
                .add_node_with("a", NodeOptions::new().gate(gate), step)
                .set_entry_point("a")
                .set_finish_point("a")
        }
        "graph_of_10001_nodes" => chain(10_001),
        "graph_of_100000_edges" => dense(),
        "graph_inside_itself" => {
            let inner = one().compile().expect("one node is sound");
            let outer = StateGraph::new("g").add_subgraph("sub", &inner, KeyMapping::new());
            outer.set_entry_point("sub").set_finish_point("sub")
        }
        "graph_with_shared_node" => shared(),
        _ => return None,
    })
}
