//! From a graph's id to the compiled graph.

use holdpoint_graph::{CompiledGraph, Fingerprint, GraphId};

/// Why a graph cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// This program does not know the graph.
    #[error("unknown_graph: no graph {0} here")]
    UnknownGraph(GraphId),
    /// This program has the graph in another structure only.
    #[error("unknown_version: no version {fingerprint} of graph {graph} here")]
    UnknownVersion {
        /// The graph.
        graph: GraphId,
        /// The structure that was asked for.
        fingerprint: Fingerprint,
    },
    /// The resolver failed.
    #[error("the resolver failed: {0}")]
    Failed(String),
}

/// Looks graphs up. Called once for every claimed run.
pub trait GraphResolver: Send + Sync {
    /// The graph in the structure asked for, or in its newest one when none is.
    ///
    /// # Errors
    /// When there is no such graph.
    fn resolve(
        &self,
        graph: &GraphId,
        fingerprint: Option<&Fingerprint>,
    ) -> Result<CompiledGraph, ResolveError>;
}

impl<F> GraphResolver for F
where
    F: Fn(&GraphId, Option<&Fingerprint>) -> Result<CompiledGraph, ResolveError> + Send + Sync,
{
    fn resolve(
        &self,
        graph: &GraphId,
        fingerprint: Option<&Fingerprint>,
    ) -> Result<CompiledGraph, ResolveError> {
        self(graph, fingerprint)
    }
}

/// Resolves one graph only.
#[derive(Debug, Clone)]
pub struct SingleGraphResolver(pub CompiledGraph);

impl GraphResolver for SingleGraphResolver {
    fn resolve(
        &self,
        graph: &GraphId,
        fingerprint: Option<&Fingerprint>,
    ) -> Result<CompiledGraph, ResolveError> {
        choose(std::slice::from_ref(&self.0), graph, fingerprint)
    }
}

/// The graphs of a program; of several versions of one graph the last added is the newest.
#[derive(Debug, Clone, Default)]
pub struct GraphSet {
    graphs: Vec<CompiledGraph>,
}

impl GraphSet {
    /// No graphs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a graph, or a newer version of one.
    pub fn add(&mut self, graph: CompiledGraph) {
        self.graphs.retain(|old| old.fingerprint() != graph.fingerprint());
        self.graphs.push(graph);
    }

    /// The graphs in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &CompiledGraph> {
        self.graphs.iter()
    }
}

impl GraphResolver for GraphSet {
    fn resolve(
        &self,
        graph: &GraphId,
        fingerprint: Option<&Fingerprint>,
    ) -> Result<CompiledGraph, ResolveError> {
        choose(&self.graphs, graph, fingerprint)
    }
}

fn choose(
    graphs: &[CompiledGraph],
    graph: &GraphId,
    fingerprint: Option<&Fingerprint>,
) -> Result<CompiledGraph, ResolveError> {
    let mut versions = graphs.iter().rev().filter(|known| known.id() == graph).peekable();
    if versions.peek().is_none() {
        return Err(ResolveError::UnknownGraph(graph.clone()));
    }
    let found = versions.find(|known| fingerprint.is_none_or(|asked| asked == known.fingerprint()));
    match (found, fingerprint) {
        (Some(found), _) => Ok(found.clone()),
        (None, Some(fingerprint)) => Err(ResolveError::UnknownVersion {
            graph: graph.clone(),
            fingerprint: fingerprint.clone(),
        }),
        (None, None) => Err(ResolveError::UnknownGraph(graph.clone())),
    }
}
