//! Drawings: the same every time, safe with any label, and with a run's position over them.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use holdpoint_graph::{
    CompiledGraph, Effect, Gate, KeyMapping, Mark, NodeOptions, Overlay, Question, Send, StateGraph,
};
use serde_json::json;

use crate::driver::{Driver, plain, step};

/// Every kind of node and edge, and a sub-graph inside a sub-graph.
pub(crate) fn everything() -> CompiledGraph {
    let gate = Gate::new("ask", Question::new("Charge {amount}?")).reject_to("fix");
    let inner = plain("inner", &[("x", "y"), ("y", "END")]).compile().unwrap();
    let middle = plain("middle", &[("draft", "send")])
        .add_subgraph("in", &inner, KeyMapping::new())
        .add_edge("send", "in")
        .set_finish_point("in")
        .compile()
        .unwrap();
    plain("everything", &[("start", "review2"), ("w", "end"), ("fix", "end"), ("end", "END")])
        .add_subgraph("review", &middle, KeyMapping::new())
        .add_edge("review2", "review")
        .add_router("plan")
        .add_edge("review", "plan")
        .add_fan_edge("plan", |_| vec![Send::new("w", json!({}))], ["w", "ask"])
        .add_node_with("ask", NodeOptions::new().gate(gate).goto_targets(["w2"]), step)
        .add_node_with("w2", NodeOptions::new().title("second").effect(Effect::Unsafe), step)
        .add_conditional_edge("ask", |_| "end", ["w2", "end"])
        .add_edge("w2", "end")
        .compile()
        .unwrap()
}

const HARD: [&str; 22] = [
    "two words",
    "say \"hi\"",
    "[box] {brace} (round) |pipe|",
    "`ticks`",
    "line\nbreak",
    "end",
    "שלום עולם",
    "turned \u{202e}around",
    "<b>bold</b> &amp; &lt;",
    "style:x#35;y",
    "%%{init: {}}%%",
    "a-->b",
    "src/a.js",
    "1. list",
    "- item",
    "_x_ *y* #z",
    "back\\slash\\",
    "\\\"",
    "\\N \\G a\\nb",
    "{x|y}",
    "🦀 crab",
    "nul\u{0} tab\t esc\u{1b}[2J",
];

fn odd_labels() -> CompiledGraph {
    let mut graph = StateGraph::new("odd-labels").set_entry_point("n0");
    for (index, title) in HARD.iter().enumerate() {
        let options = NodeOptions::new().title(*title);
        graph = graph.add_node_with(format!("n{index}"), options, step);
        graph = match index + 1 == HARD.len() {
            true => graph.set_finish_point(format!("n{index}")),
            false => graph.add_edge(format!("n{index}"), format!("n{}", index + 1)),
        };
    }
    graph.compile().unwrap()
}

#[test]
fn every_shape_is_drawn() {
    let graph = everything();
    insta::assert_snapshot!("everything_mermaid", graph.to_mermaid());
    insta::assert_snapshot!("everything_dot", graph.to_dot());
    insta::assert_snapshot!("everything_text", graph.to_text());
    let json = serde_json::to_string_pretty(&graph.to_json()).unwrap();
    insta::assert_snapshot!("everything_json", json);
}

#[test]
fn hard_labels_are_safe() {
    let graph = odd_labels();
    insta::assert_snapshot!("odd_labels_mermaid", graph.to_mermaid());
    insta::assert_snapshot!("odd_labels_dot", graph.to_dot());
    insta::assert_snapshot!("odd_labels_text", graph.to_text());
    let titles: Vec<String> = graph.to_json()["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["title"].as_str().unwrap().to_owned())
        .collect();
    assert!(HARD.iter().all(|title| titles.iter().any(|drawn| drawn == title)));
}

#[test]
fn words_of_the_languages_may_be_ids() {
    let ids = ["end", "End", "default", "graph", "subgraph", "class", "style", "click", "o1", "x1"];
    let mut edges: Vec<(&str, &str)> = ids.windows(2).map(|pair| (pair[0], pair[1])).collect();
    edges.push(("x1", "1_A"));
    edges.push(("1_A", "END"));
    let graph = plain("digraph", &edges).compile().unwrap();
    let mermaid = graph.to_mermaid();
    assert!(mermaid.lines().filter(|line| line.trim() == "end").count() == 0, "{mermaid}");
    assert_eq!(mermaid.matches("[\"").count(), 11 + 2, "one box for each node, start and end");
    assert!(parsed_by_dot(&graph.to_dot()));
}

#[test]
fn the_data_has_every_edge_of_the_graph() {
    let graph = everything();
    let data = graph.to_json();
    let drawn = data["edges"].as_array().unwrap().len();
    let edges = |id: &str| graph.edges_from(id).iter().map(|e| e.targets().len()).sum::<usize>();
    let own: usize = graph.nodes().map(|node| edges(node.id())).sum();
    assert_eq!(drawn, own + 2, "and one goto, one rejection");
    let ids: std::collections::BTreeSet<&str> =
        data["nodes"].as_array().unwrap().iter().map(|n| n["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), graph.nodes().count());
    assert_eq!(data["clusters"].as_array().unwrap().len(), 2);
}

#[test]
fn a_runs_position_lies_over_the_drawing() {
    let graph = everything();
    let mut run = Driver::start(&graph, json!({}));
    let at = |run: &Driver, node: &str| Overlay::of(&run.progress).mark(node);
    assert_eq!((at(&run, "start"), at(&run, "w")), (Some(Mark::Current), None));
    run.run_node("start");
    assert_eq!((at(&run, "start"), at(&run, "review2")), (Some(Mark::Done), Some(Mark::Current)));
    let graph2 = plain("g", &[("a", "c"), ("c", "end"), ("end", "END")])
        .add_node_with("b", NodeOptions::new().gate(Gate::open("b")), step)
        .add_edge("a", "b")
        .add_conditional_edge("b", |_| "ghost", ["end"])
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph2, json!({}));
    run.run_node("a");
    assert_eq!((at(&run, "b"), at(&run, "c")), (Some(Mark::Asked), Some(Mark::Current)));
    let drawing = graph2.drawing().at(&run.progress);
    insta::assert_snapshot!("overlay_mermaid", drawing.to_mermaid());
    insta::assert_snapshot!("overlay_dot", drawing.to_dot());
    insta::assert_snapshot!("overlay_text", drawing.to_text());
    assert_eq!(drawing.to_json()["nodes"][1]["mark"], "asked");
    assert_eq!(drawing.to_json()["nodes"][3]["mark"], json!(null));
    run.answer(&run.asked(), json!(1));
    run.run_node("b");
    assert_eq!(at(&run, "b"), Some(Mark::Failed), "its route failed");
}

#[test]
fn graphviz_reads_what_is_written_for_it() {
    let overlaid = {
        let graph = everything();
        let run = Driver::start(&graph, json!({}));
        graph.drawing().at(&run.progress).to_dot()
    };
    for dot in [everything().to_dot(), odd_labels().to_dot(), overlaid] {
        assert!(parsed_by_dot(&dot), "{dot}");
    }
}

/// Whether `dot` takes the text; true where there is no `dot`.
fn parsed_by_dot(text: &str) -> bool {
    let mut dot = Command::new("dot");
    dot.arg("-Tcanon").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Ok(mut child) = dot.spawn() else { return true };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    output.status.success() && output.stderr.is_empty()
}
