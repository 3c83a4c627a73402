//! A Mermaid flowchart, top down.
//!
//! Start and end are rounded, a gate is a hexagon before its node, a node is a box, a conditional
//! edge a `?` diamond with its targets, a goto dashed, a sub-graph a box around its nodes.

use std::fmt::Write;

use super::{
    Drawing, Mark,
    sketch::{EdgeKind, Sketch, gate_label},
};
use crate::{Gate, Node};

pub(super) fn write(drawing: &Drawing<'_>) -> String {
    let sketch = Sketch::of(drawing.graph);
    let mut out = String::from("flowchart TD\n    begin([\"start\"])\n");
    cluster(&mut out, &sketch, None, 1, &mut 0);
    out.push_str("    finish([\"end\"])\n");
    line(&mut out, 1, &format!("begin --> {}", entry(&sketch, sketch.graph.entry())));
    for (number, node) in (0..).zip(sketch.graph.nodes()) {
        edges(&mut out, &sketch, number, node);
    }
    for mark in Mark::ALL {
        let marked = drawing.marked(mark);
        if !marked.is_empty() {
            let (fill, stroke) = mark.colours();
            let name = mark.as_str();
            let ids: Vec<String> = marked.iter().map(|number| format!("n{number}")).collect();
            line(&mut out, 1, &format!("classDef {name} fill:{fill},stroke:{stroke}"));
            line(&mut out, 1, &format!("class {} {name}", ids.join(",")));
        }
    }
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{text}", "", depth * 4);
}

fn cluster(
    out: &mut String,
    sketch: &Sketch<'_>,
    outer: Option<&str>,
    depth: usize,
    count: &mut usize,
) {
    for (number, node) in sketch.nodes_in(outer) {
        shapes(out, sketch, depth, (number, node));
    }
    for (prefix, graph) in sketch.clusters_in(outer) {
        let label = label(&format!("{prefix} ({graph})"));
        line(out, depth, &format!("subgraph c{count}[\"{label}\"]"));
        *count += 1;
        cluster(out, sketch, Some(prefix), depth + 1, count);
        line(out, depth, "end");
    }
}

fn shapes(out: &mut String, sketch: &Sketch<'_>, depth: usize, (number, node): (usize, &Node)) {
    if let Some(gate) = node.gate() {
        let label = label(&gate_label(gate));
        line(out, depth, &format!("g{number}{{{{\"{label}\"}}}}"));
    }
    let label = label(node.title());
    let shape = match node.is_router() {
        true => format!("n{number}[/\"{label}\"/]"),
        false => format!("n{number}[\"{label}\"]"),
    };
    line(out, depth, &shape);
    if sketch.fans(node).is_some() {
        line(out, depth, &format!("r{number}{{\"?\"}}"));
    }
}

fn edges(out: &mut String, sketch: &Sketch<'_>, number: usize, node: &Node) {
    if node.gate().is_some() {
        line(out, 1, &format!("g{number} --> n{number}"));
    }
    let fans = sketch.fans(node);
    if fans.is_some() {
        line(out, 1, &format!("n{number} --> r{number}"));
    }
    for (to, kind) in sketch.edges(node) {
        let target = entry(sketch, to);
        let edge = match kind {
            EdgeKind::Plain => format!("n{number} --> {target}"),
            EdgeKind::Route => {
                let name = if target == "finish" { "end" } else { to };
                let each = if fans == Some(true) { "each " } else { "" };
                format!("r{number} -->|\"{each}{}\"| {target}", label(name))
            }
            EdgeKind::Goto => format!("n{number} -.->|\"goto\"| {target}"),
            EdgeKind::Choice(choice) => {
                format!("g{number} -.->|\"{}\"| {target}", label(choice))
            }
        };
        line(out, 1, &edge);
    }
}

/// What an edge to a node leads to: the gate before it, if it has one.
fn entry(sketch: &Sketch<'_>, node: &str) -> String {
    let gate = sketch.graph.node(node).and_then(Node::gate);
    match (sketch.number(node), gate) {
        (None, _) => "finish".to_owned(),
        (Some(number), None) => format!("n{number}"),
        (Some(number), Some(Gate { .. })) => format!("g{number}"),
    }
}

/// A text for a quoted label. Letters, digits and blanks stay, `-`, `.`, `_` and `/` between two
/// of them too; every other sign of ASCII is written by its number, so that neither the
/// language, nor Markdown, nor HTML sees it.
fn label(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_plain = |at: Option<usize>| {
        at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_alphanumeric)
    };
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        match c {
            '\n' => out.push_str("<br/>"),
            ' ' => out.push(' '),
            c if c.is_ascii_alphanumeric() => out.push(*c),
            '-' | '.' | '_' | '/' if is_plain(at.checked_sub(1)) && is_plain(Some(at + 1)) => {
                out.push(*c);
            }
            '"' => out.push_str("#quot;"),
            // Controls, and signs that turn the direction of the text around, are shown.
            c => crate::printable(&c.to_string(), 1).chars().for_each(|c| match c {
                c if c.is_ascii_punctuation() => out.push_str(&format!("#{};", u32::from(c))),
                c => out.push(c),
            }),
        }
    }
    out
}
