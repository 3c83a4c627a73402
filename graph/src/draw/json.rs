//! A graph as data, for whoever draws it in another way.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Drawing,
    sketch::{Sketch, parent},
};
use crate::{Gate, Node};

pub(super) fn write(drawing: &Drawing<'_>) -> Value {
    let sketch = Sketch::of(drawing.graph);
    let graph = sketch.graph;
    let edges = graph.nodes().flat_map(|node| {
        let edge = |(to, kind): (&str, super::sketch::EdgeKind<'_>)| {
            json!({ "from": node.id(), "to": to, "kind": kind.as_str() })
        };
        sketch.edges(node).into_iter().map(edge).collect::<Vec<_>>()
    });
    let clusters = graph
        .subgraphs()
        .map(|(prefix, graph)| json!({ "id": prefix, "graph": graph, "parent": parent(prefix) }));
    json!({
        "graph": graph.id(),
        "fingerprint": graph.fingerprint(),
        "entry": graph.entry(),
        "nodes": graph.nodes().map(|node| of_node(drawing, node)).collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "clusters": clusters.collect::<Vec<_>>(),
    })
}

fn of_node(drawing: &Drawing<'_>, node: &Node) -> Value {
    let goto: Vec<&str> = node.options.goto.iter().map(|goto| goto.target.as_str()).collect();
    let mut shown = json!({
        "id": node.id(),
        "title": node.title(),
        "kind": if node.is_router() { "router" } else { "node" },
        "effect": node.effect().as_str(),
        "gate": node.gate().map(of_gate),
        "goto": goto,
        "cluster": parent(node.id()),
    });
    if let (Some(fields), Some(_)) = (shown.as_object_mut(), &drawing.overlay) {
        let mark = drawing.mark(node.id()).map(super::Mark::as_str);
        fields.insert("mark".to_owned(), mark.into());
    }
    shown
}

fn of_gate(gate: &Gate) -> Value {
    json!({
        "name": gate.name(),
        "question": gate.question().template(),
        "schema": gate.question().answer_schema(),
        "reject_to": gate.target("reject"),
        "routes": gate.routes().iter().cloned().collect::<BTreeMap<_, _>>(),
        "quorum": gate.question().votes_needed(),
    })
}
