//! The builder of graphs. Nothing fails before [`StateGraph::compile`], which reports every fault.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use serde::de::DeserializeOwned;

use crate::{
    Answered, CompiledGraph, END, Edge, EdgeCondition, Gate, GraphFaults, IntoUpdate, KeyMapping,
    Node, NodeContext, NodeError, NodeOptions, State, StateSchema, compile, node::node_func,
    view::KeyView,
};

/// A graph under construction.
///
/// ```
/// use holdpoint_graph::{NodeContext, State, StateGraph, Update};
///
/// async fn hello(_: NodeContext, state: State) -> Result<Update, holdpoint_graph::NodeError> {
///     Ok(Update::new().set("greeting", format!("hello {}", state.read::<String>("name")?)))
/// }
///
/// let graph = StateGraph::new("hello")
///     .add_node("hello", hello)
///     .set_entry_point("hello")
///     .set_finish_point("hello")
///     .compile()
///     .unwrap();
/// assert_eq!(graph.entry(), "hello");
/// ```
#[derive(Debug, Clone)]
pub struct StateGraph {
    pub(crate) id: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<(String, Edge)>,
    pub(crate) entries: Vec<String>,
    pub(crate) schema: StateSchema,
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) faults: Vec<crate::GraphFault>,
    pub(crate) warnings: Vec<crate::GraphFault>,
}

/// An inlined sub-graph: the border of it that outer edges are tied to.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) entry: String,
    pub(crate) graph: String,
}

impl StateGraph {
    /// An empty graph called `id`.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            nodes: Vec::new(),
            edges: Vec::new(),
            entries: Vec::new(),
            schema: StateSchema::new(),
            clusters: BTreeMap::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The reducers of the state's keys; those of sub-graphs come beside them.
    #[must_use]
    pub fn with_schema(mut self, schema: StateSchema) -> Self {
        let before = std::mem::replace(&mut self.schema, schema);
        let differing = self.schema.adopt(&before, str::to_owned);
        self.warnings.extend(differing.iter().map(|key| compile::two_reducers(key)));
        self
    }

    /// Adds a node with the default options.
    #[must_use]
    pub fn add_node<S, R, F, Fut>(self, id: impl Into<String>, function: F) -> Self
    where
        S: DeserializeOwned + Send + 'static,
        R: IntoUpdate,
        F: Fn(NodeContext, S) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, NodeError>> + Send + 'static,
    {
        self.add_node_with(id, NodeOptions::new(), function)
    }

    /// Adds a node with an effect class, retries, a time limit, a gate or goto targets.
    #[must_use]
    pub fn add_node_with<S, R, F, Fut>(
        mut self,
        id: impl Into<String>,
        options: NodeOptions,
        function: F,
    ) -> Self
    where
        S: DeserializeOwned + Send + 'static,
        R: IntoUpdate,
        F: Fn(NodeContext, S) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, NodeError>> + Send + 'static,
    {
        let run = Some(node_func(function));
        self.nodes.push(Node { id: id.into(), options, run, view: KeyView::default() });
        self
    }

    /// Adds a node behind a gate of the same name that takes any JSON value for an answer; the
    /// node reads it with [`NodeContext::answer`].
    #[must_use]
    pub fn add_interrupt_node<S, R, F, Fut>(self, id: impl Into<String>, function: F) -> Self
    where
        S: DeserializeOwned + Send + 'static,
        R: IntoUpdate,
        F: Fn(NodeContext, S) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, NodeError>> + Send + 'static,
    {
        let id = id.into();
        let options = NodeOptions::new().gate(Gate::open(&id));
        self.add_node_with(id, options, function)
    }

    /// Adds a node without a function, for a route of its own. It counts as no step.
    #[must_use]
    pub fn add_router(mut self, id: impl Into<String>) -> Self {
        let options = NodeOptions::new();
        self.nodes.push(Node { id: id.into(), options, run: None, view: KeyView::default() });
        self
    }

    /// Adds an edge. Several edges from one node are a fork.
    #[must_use]
    pub fn add_edge(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.edges.push((from.into(), Edge::Plain { to: to.into() }));
        self
    }

    /// Adds a route that answers one of `targets`.
    #[must_use]
    pub fn add_conditional_edge<A, T>(
        self,
        from: impl Into<String>,
        ask: impl Fn(&State) -> A + Send + Sync + 'static,
        targets: impl IntoIterator<Item = T>,
    ) -> Self
    where
        A: Into<String>,
        T: Into<String>,
    {
        let ask: EdgeCondition = Arc::new(move |state| Answered::One(ask(state).into()));
        self.route(from.into(), ask, targets, false)
    }

    /// Adds a route that may answer several of `targets` at once, or a list of
    /// [`Send`](crate::Send)s to them.
    #[must_use]
    pub fn add_fan_edge<A, T>(
        self,
        from: impl Into<String>,
        ask: impl Fn(&State) -> A + Send + Sync + 'static,
        targets: impl IntoIterator<Item = T>,
    ) -> Self
    where
        A: Into<Answered>,
        T: Into<String>,
    {
        let ask: EdgeCondition = Arc::new(move |state| ask(state).into());
        self.route(from.into(), ask, targets, true)
    }

    fn route<T: Into<String>>(
        mut self,
        from: String,
        ask: EdgeCondition,
        targets: impl IntoIterator<Item = T>,
        is_fan: bool,
    ) -> Self {
        let targets = targets.into_iter().map(Into::into).collect();
        self.edges.push((from, Edge::Route { ask, targets, is_fan }));
        self
    }

    /// Where a run begins.
    #[must_use]
    pub fn set_entry_point(mut self, node: impl Into<String>) -> Self {
        self.entries.push(node.into());
        self
    }

    /// A node after which the run ends.
    #[must_use]
    pub fn set_finish_point(self, node: impl Into<String>) -> Self {
        self.add_edge(node, END)
    }

    /// Puts a graph in the place of the node `id`: its nodes are inlined as `id/node`. Gates,
    /// checkpoints, forks and limits work inside.
    #[must_use]
    pub fn add_subgraph(
        self,
        id: impl Into<String>,
        inner: &CompiledGraph,
        mapping: KeyMapping,
    ) -> Self {
        compile::inline(self, &id.into(), inner, &mapping)
    }

    /// [`StateGraph::add_subgraph`] under its other name.
    #[must_use]
    pub fn subgraph_node(
        self,
        id: impl Into<String>,
        inner: &CompiledGraph,
        mapping: KeyMapping,
    ) -> Self {
        self.add_subgraph(id, inner, mapping)
    }

    /// Checks everything and makes the graph.
    ///
    /// # Errors
    /// All faults at once, each with a code, the node and what to do.
    pub fn compile(self) -> Result<CompiledGraph, GraphFaults> {
        compile::compile(self)
    }
}
