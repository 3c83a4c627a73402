//! A graph as a list for terminals: each node with what leads from it.

use std::fmt::Write;

use super::{
    Drawing, Mark,
    sketch::{EdgeKind, Sketch},
};
use crate::{END, Effect, Node, printable};

pub(super) fn write(drawing: &Drawing<'_>) -> String {
    let sketch = Sketch::of(drawing.graph);
    let graph = sketch.graph;
    let mut out = format!("graph {}\nfingerprint {}\n", graph.id(), graph.fingerprint());
    line(&mut out, 0, &format!("entry {}", graph.entry()));
    cluster(&mut out, drawing, &sketch, None, 0);
    out
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{text}", "", depth * 2);
}

fn cluster(
    out: &mut String,
    drawing: &Drawing<'_>,
    sketch: &Sketch<'_>,
    outer: Option<&str>,
    depth: usize,
) {
    for (_, node) in sketch.nodes_in(outer) {
        line(out, depth, &head(drawing, node));
        edges(out, sketch, node, depth + 1);
    }
    for (prefix, graph) in sketch.clusters_in(outer) {
        line(out, depth, &format!("{prefix}/ (graph {graph})"));
        cluster(out, drawing, sketch, Some(prefix), depth + 1);
    }
}

fn head(drawing: &Drawing<'_>, node: &Node) -> String {
    let mut head = String::new();
    if drawing.overlay.is_some() {
        head.push_str(match drawing.mark(node.id()) {
            None => "[ ] ",
            Some(Mark::Done) => "[x] ",
            Some(Mark::Current) => "[>] ",
            Some(Mark::Asked) => "[?] ",
            Some(Mark::Failed) => "[!] ",
        });
    }
    head.push_str(node.id());
    if node.title() != node.id() {
        head.push_str(&format!(" \"{}\"", printable(node.title(), 80)));
    }
    if node.is_router() {
        head.push_str(" (router)");
    }
    match node.effect() {
        Effect::Idempotent => {}
        effect @ (Effect::Pure | Effect::Unsafe) => {
            head.push_str(&format!(" ({})", effect.as_str()));
        }
    }
    head
}

fn edges(out: &mut String, sketch: &Sketch<'_>, node: &Node, depth: usize) {
    if let Some(gate) = node.gate() {
        let question = gate.question().template().unwrap_or_default();
        line(out, depth, &format!("gate {} \"{}\"", gate.name(), printable(question, 80)));
    }
    for (to, kind) in sketch.edges(node) {
        let arrow = match kind {
            EdgeKind::Plain => "->".to_owned(),
            EdgeKind::Route if sketch.fans(node) == Some(true) => "?* ->".to_owned(),
            EdgeKind::Route => "? ->".to_owned(),
            EdgeKind::Goto => "goto ->".to_owned(),
            EdgeKind::Choice(choice) => format!("{} ->", printable(choice, 80)),
        };
        let to = if to == END { "end" } else { to };
        line(out, depth, &format!("{arrow} {to}"));
    }
}
