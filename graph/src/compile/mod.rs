//! From a builder to a graph: every fault at once, joins from post-dominators, sub-graphs inlined.

mod check;
mod dominators;
mod inline;
mod nearest;
mod reach;
mod tie;

use std::collections::BTreeMap;

pub(crate) use self::{
    dominators::Dominators,
    inline::{ask, inline, two_reducers},
    nearest::nearest,
};
use crate::{
    CompiledGraph, Edge, Fingerprint, GraphFaults, GraphId, Node, StateGraph,
    compiled::{Inner, NodeStructure, Structure},
};

/// Checks the builder's graph and makes the compiled one.
pub(crate) fn compile(builder: StateGraph) -> Result<CompiledGraph, GraphFaults> {
    let builder = tie::tie_exits(builder);
    let checked = check::check(&builder);
    let graph = builder.id.clone();
    let faults = |faults| GraphFaults { graph: graph.clone(), faults };
    if !checked.faults.is_empty() {
        return Err(faults(checked.faults));
    }
    let StateGraph { nodes, edges, mut entries, schema, clusters, .. } = builder;
    let nodes: BTreeMap<String, Node> =
        nodes.into_iter().map(|node| (node.id.clone(), node)).collect();
    let mut by_source: BTreeMap<String, Vec<Edge>> = BTreeMap::new();
    for (from, edge) in edges {
        by_source.entry(from).or_default().push(edge);
    }
    let id = GraphId::new(&graph).expect("the check refused ids that are none");
    let entry = entries.pop().expect("the check refused a graph without an entry");
    let fingerprint = fingerprint(id.as_str(), &entry, &nodes, &by_source, &schema);
    let inner = Inner {
        id,
        nodes,
        edges: by_source,
        entry,
        schema,
        clusters,
        dominators: checked.dominators,
        fingerprint,
        warnings: checked.warnings,
    };
    Ok(CompiledGraph { inner: std::sync::Arc::new(inner) })
}

fn fingerprint(
    id: &str,
    entry: &str,
    nodes: &BTreeMap<String, Node>,
    edges: &BTreeMap<String, Vec<Edge>>,
    schema: &crate::StateSchema,
) -> Fingerprint {
    let of_node = |node: &'_ Node| -> (Vec<String>, Vec<(bool, Vec<String>)>) {
        let (mut plain, mut routes) = (Vec::new(), Vec::new());
        for edge in edges.get(&node.id).into_iter().flatten() {
            match edge {
                Edge::Plain { to } => plain.push(to.clone()),
                Edge::Route { targets, is_fan, .. } => {
                    let mut targets = targets.clone();
                    targets.sort_unstable();
                    routes.push((*is_fan, targets));
                }
            }
        }
        (plain, routes)
    };
    let shapes: Vec<_> = nodes.values().map(|node| (node, of_node(node))).collect();
    let structures = shapes.iter().map(|(node, (plain, routes))| NodeStructure {
        id: &node.id,
        effect: node.effect().as_str(),
        gate: node.gate().map(|gate| (gate.name(), gate.routes())),
        plain: plain.iter().map(String::as_str).collect(),
        routes: routes.iter().map(|(fan, targets)| (*fan, targets.as_slice())).collect(),
        goto: node.options.goto.iter().map(|goto| goto.target.as_str()).collect(),
        view: &node.view,
    });
    let reducers = schema.names().collect();
    Fingerprint::of(&Structure { id, entry, nodes: structures.collect(), reducers })
}
