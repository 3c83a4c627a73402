//! A digraph in Graphviz's language: start a green circle, end a red double circle, a gate an
//! orange diamond, conditional edges dashed, a goto dotted, a sub-graph a cluster.

use std::fmt::Write;

use super::{
    Drawing,
    sketch::{EdgeKind, Sketch, gate_label},
};
use crate::Node;

pub(super) fn write(drawing: &Drawing<'_>) -> String {
    let sketch = Sketch::of(drawing.graph);
    let mut out = format!("digraph {} {{\n", quoted(sketch.graph.id().as_str()));
    for text in [
        "rankdir=TB;",
        "node [shape=box];",
        "\"begin\" [label=\"start\", shape=circle, style=filled, fillcolor=\"green\"];",
    ] {
        line(&mut out, 1, text);
    }
    cluster(&mut out, drawing, &sketch, None, 1);
    let end = "\"finish\" [label=\"end\", shape=doublecircle, style=filled, fillcolor=\"red\"];";
    line(&mut out, 1, end);
    line(&mut out, 1, &format!("\"begin\" -> {};", entry(&sketch, sketch.graph.entry())));
    for (number, node) in (0..).zip(sketch.graph.nodes()) {
        if node.gate().is_some() {
            line(&mut out, 1, &format!("\"g{number}\" -> \"n{number}\";"));
        }
        for (to, kind) in sketch.edges(node) {
            let target = entry(&sketch, to);
            let edge = match kind {
                EdgeKind::Plain => format!("\"n{number}\" -> {target};"),
                EdgeKind::Route => {
                    let each = if sketch.fans(node) == Some(true) { "each" } else { "?" };
                    format!("\"n{number}\" -> {target} [style=dashed, label=\"{each}\"];")
                }
                EdgeKind::Goto => {
                    format!("\"n{number}\" -> {target} [style=dotted, label=\"goto\"];")
                }
                EdgeKind::Choice(choice) => {
                    let label = quoted(choice);
                    format!("\"g{number}\" -> {target} [style=dashed, label={label}];")
                }
            };
            line(&mut out, 1, &edge);
        }
    }
    out.push_str("}\n");
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{text}", "", depth * 4);
}

fn cluster(
    out: &mut String,
    drawing: &Drawing<'_>,
    sketch: &Sketch<'_>,
    outer: Option<&str>,
    depth: usize,
) {
    for (number, node) in sketch.nodes_in(outer) {
        if let Some(gate) = node.gate() {
            let label = quoted(&gate_label(gate));
            let look = "shape=diamond, style=filled, fillcolor=\"orange\"";
            line(out, depth, &format!("\"g{number}\" [label={label}, {look}];"));
        }
        let router = if node.is_router() { ", shape=parallelogram" } else { "" };
        let colours = drawing.mark(node.id()).map(|mark| {
            let (fill, border) = mark.colours();
            let class = mark.as_str();
            format!(", class=\"{class}\", style=filled, fillcolor=\"{fill}\", color=\"{border}\"")
        });
        let (label, colours) = (quoted(node.title()), colours.unwrap_or_default());
        line(out, depth, &format!("\"n{number}\" [label={label}{router}{colours}];"));
    }
    for (prefix, graph) in sketch.clusters_in(outer) {
        line(out, depth, &format!("subgraph {} {{", quoted(&format!("cluster_{prefix}"))));
        let label = quoted(&format!("{prefix} ({graph})"));
        line(out, depth + 1, &format!("label={label};"));
        cluster(out, drawing, sketch, Some(prefix), depth + 1);
        line(out, depth, "}");
    }
}

/// What an edge to a node leads to: the gate before it, if it has one.
fn entry(sketch: &Sketch<'_>, node: &str) -> String {
    let has_gate = sketch.graph.node(node).and_then(Node::gate).is_some();
    match sketch.number(node) {
        None => "\"finish\"".to_owned(),
        Some(number) if has_gate => format!("\"g{number}\""),
        Some(number) => format!("\"n{number}\""),
    }
}

/// A text in quotes. The drawn text is the text given, but for control characters.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Graphviz reads HTML's entities in every label.
            '&' => out.push_str("&amp;"),
            c => out.push_str(&crate::printable(&c.to_string(), 1).replace('\\', "\\\\")),
        }
    }
    out.push('"');
    out
}
