//! What all drawings share: nodes by number, edges by kind, clusters as a tree.

use std::collections::BTreeMap;

use crate::{CompiledGraph, Edge, Gate, Node};

/// What an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind<'a> {
    Plain,
    Route,
    Goto,
    /// A choice of the node's gate.
    Choice(&'a str),
}

impl<'a> EdgeKind<'a> {
    pub(super) const fn as_str(self) -> &'a str {
        match self {
            Self::Plain => "plain",
            Self::Route => "route",
            Self::Goto => "goto",
            Self::Choice(choice) => choice,
        }
    }
}

/// A graph's shape in a stable order: the order of the nodes' ids.
pub(super) struct Sketch<'a> {
    pub(super) graph: &'a CompiledGraph,
    numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Sketch<'a> {
    pub(super) fn of(graph: &'a CompiledGraph) -> Self {
        let numbers = graph.nodes().map(Node::id).zip(0..).collect();
        Self { graph, numbers }
    }

    /// The number of a node; none is the end.
    pub(super) fn number(&self, node: &str) -> Option<usize> {
        self.numbers.get(node).copied()
    }

    /// The edges that leave a node, the gate's choices included.
    pub(super) fn edges(&self, node: &'a Node) -> Vec<(&'a str, EdgeKind<'a>)> {
        let of_edge = |edge: &'a Edge| {
            let kind = match edge {
                Edge::Plain { .. } => EdgeKind::Plain,
                Edge::Route { .. } => EdgeKind::Route,
            };
            edge.targets().iter().map(move |to| (to.as_str(), kind))
        };
        let edges = self.graph.edges_from(node.id()).iter().flat_map(of_edge);
        let goto = node.options.goto.iter().map(|goto| (goto.target.as_str(), EdgeKind::Goto));
        let routes = node.gate().into_iter().flat_map(Gate::routes);
        let choices = routes.map(|(choice, to)| (to.as_str(), EdgeKind::Choice(choice)));
        edges.chain(goto).chain(choices).collect()
    }

    /// Whether a node's route may answer several targets at once; none: it has no route.
    pub(super) fn fans(&self, node: &Node) -> Option<bool> {
        self.graph.edges_from(node.id()).iter().find_map(|edge| match edge {
            Edge::Route { is_fan, .. } => Some(*is_fan),
            Edge::Plain { .. } => None,
        })
    }

    /// The sub-graphs that lie directly in `outer`: the prefix, and the graph's id.
    pub(super) fn clusters_in(&self, outer: Option<&str>) -> Vec<(&'a str, &'a str)> {
        self.graph.subgraphs().filter(|(prefix, _)| parent(prefix) == outer).collect()
    }

    /// The nodes that lie directly in `cluster`, with their numbers.
    pub(super) fn nodes_in(&self, cluster: Option<&str>) -> Vec<(usize, &'a Node)> {
        let nodes = (0..).zip(self.graph.nodes());
        nodes.filter(|(_, node)| parent(node.id()) == cluster).collect()
    }
}

/// The sub-graph that an id lies in: only sub-graphs put a `/` into ids.
pub(super) fn parent(id: &str) -> Option<&str> {
    id.rsplit_once('/').map(|(prefix, _)| prefix)
}

/// The text beside a gate: its name and its question.
pub(super) fn gate_label(gate: &Gate) -> String {
    match gate.question().template() {
        Some(text) if !text.is_empty() => format!("{}\n{text}", gate.name()),
        Some(_) | None => gate.name().to_owned(),
    }
}
