//! A compiled graph: checked, immutable, ready to be run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Serialize;

use crate::{
    END, Edge, Fingerprint, GraphFault, GraphId, Node, StateSchema, builder::Cluster,
    compile::Dominators,
};

/// A checked graph. Cheap to clone; nothing about it can change any more.
#[derive(Clone)]
pub struct CompiledGraph {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) id: GraphId,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) edges: BTreeMap<String, Vec<Edge>>,
    pub(crate) entry: String,
    pub(crate) schema: StateSchema,
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) dominators: Dominators,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) warnings: Vec<GraphFault>,
}

impl CompiledGraph {
    /// The graph's id.
    #[must_use]
    pub fn id(&self) -> &GraphId {
        &self.inner.id
    }

    /// The nodes in the order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.inner.nodes.values()
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.inner.nodes.get(id)
    }

    /// The edges that leave a node.
    #[must_use]
    pub fn edges_from(&self, node: &str) -> &[Edge] {
        self.inner.edges.get(node).map_or(&[], Vec::as_slice)
    }

    /// Where a run begins.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.inner.entry
    }

    /// The reducers of the state's keys.
    #[must_use]
    pub fn schema(&self) -> &StateSchema {
        &self.inner.schema
    }

    /// The hash of the structure: nodes, edges, gates, reducers, effect classes; not code.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.inner.fingerprint
    }

    /// What is legal and probably not meant.
    #[must_use]
    pub fn warnings(&self) -> &[GraphFault] {
        &self.inner.warnings
    }

    /// Every node that may come after `node`: by edges, routes, gotos and a gate's rejection.
    #[must_use]
    pub fn successors(&self, node: &str) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.edges_from(node).iter().flat_map(Edge::targets).map(String::as_str).collect();
        if let Some(node) = self.node(node) {
            all.extend(node.options.goto.iter().map(|goto| goto.target.as_str()));
            let routes = node.gate().into_iter().flat_map(|gate| gate.routes());
            all.extend(routes.map(|(_, node)| node.as_str()));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The sub-graphs: the prefix of their nodes, and the id of the graph that was inlined.
    pub fn subgraphs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inner.clusters.iter().map(|(prefix, c)| (prefix.as_str(), c.graph.as_str()))
    }

    /// Whether `node` is one of the nodes, or the end.
    #[must_use]
    pub fn has_target(&self, node: &str) -> bool {
        node == END || self.inner.nodes.contains_key(node)
    }
}

impl fmt::Debug for CompiledGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledGraph")
            .field("id", self.id())
            .field("fingerprint", self.fingerprint())
            .field("nodes", &self.inner.nodes.len())
            .finish_non_exhaustive()
    }
}

/// The structure that a fingerprint is the hash of.
#[derive(Serialize)]
pub(crate) struct Structure<'a> {
    pub(crate) id: &'a str,
    pub(crate) entry: &'a str,
    pub(crate) nodes: Vec<NodeStructure<'a>>,
    pub(crate) reducers: Vec<(&'a str, &'a str)>,
}

#[derive(Serialize)]
pub(crate) struct NodeStructure<'a> {
    pub(crate) id: &'a str,
    pub(crate) effect: &'a str,
    pub(crate) gate: Option<(&'a str, &'a [(String, String)])>,
    pub(crate) plain: Vec<&'a str>,
    pub(crate) routes: Vec<(bool, &'a [String])>,
    pub(crate) goto: Vec<&'a str>,
    #[serde(skip_serializing_if = "crate::KeyView::is_plain")]
    pub(crate) view: &'a crate::KeyView,
}
