//! Drawings of a graph: Mermaid, DOT, JSON and text, alone or with a run's position over them.
//!
//! Every drawing has a stable order and ids of its own making; names stand only in labels. So
//! equal graphs give equal texts, and no name can break a drawing.

mod dot;
mod json;
mod mermaid;
mod sketch;
mod text;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{CompiledGraph, Progress, TaskStatus};

/// Where a node stands in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The run came to it and is past it.
    Done,
    /// It runs, may run, or waits to run again.
    Current,
    /// It waits for an answer.
    Asked,
    /// It failed for good, or its route did.
    Failed,
}

impl Mark {
    const ALL: [Self; 4] = [Self::Done, Self::Current, Self::Asked, Self::Failed];

    /// The word for it, as in classes and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Current => "current",
            Self::Asked => "asked",
            Self::Failed => "failed",
        }
    }

    /// Fill and border, as `#rrggbb`.
    const fn colours(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("#d8f0dd", "#2e7d46"),
            Self::Current => ("#d6e8fb", "#1f6fb5"),
            Self::Asked => ("#fff2cc", "#b8860b"),
            Self::Failed => ("#f9d6d5", "#b3261e"),
        }
    }
}

/// The position of a run, laid over a drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    marks: BTreeMap<String, Mark>,
}

impl Overlay {
    /// The marks of a run: of a node that several branches stand at, the gravest.
    #[must_use]
    pub fn of(progress: &Progress) -> Self {
        let done = progress.visits().keys().map(|node| (node.clone(), Mark::Done));
        let mut marks: BTreeMap<String, Mark> = done.collect();
        progress.visit_tasks(|_, task, status| {
            let mark = match status {
                TaskStatus::Ready | TaskStatus::Retrying | TaskStatus::Sleeping => Mark::Current,
                TaskStatus::Asked => Mark::Asked,
                TaskStatus::Unrouted | TaskStatus::Failed => Mark::Failed,
            };
            let old = marks.entry(task.node().to_owned()).or_insert(mark);
            *old = mark.max(*old);
        });
        Self { marks }
    }

    /// The mark of a node, if the run came to it.
    #[must_use]
    pub fn mark(&self, node: &str) -> Option<Mark> {
        self.marks.get(node).copied()
    }
}

/// A graph about to be drawn.
///
/// ```
/// # use holdpoint_graph::{NodeContext, NodeError, Progress, State, StateGraph, Update};
/// # async fn f(_: NodeContext, _: State) -> Result<Update, NodeError> { Ok(Update::new()) }
/// let graph = StateGraph::new("g").add_node("a", f).set_entry_point("a").set_finish_point("a");
/// let graph = graph.compile().unwrap();
/// assert!(graph.to_mermaid().starts_with("flowchart TD\n"));
/// assert!(graph.drawing().at(&Progress::new()).to_text().contains("[ ] a"));
/// ```
#[derive(Debug, Clone)]
pub struct Drawing<'a> {
    graph: &'a CompiledGraph,
    overlay: Option<Overlay>,
}

impl<'a> Drawing<'a> {
    /// The drawing of a graph without a run.
    #[must_use]
    pub const fn new(graph: &'a CompiledGraph) -> Self {
        Self { graph, overlay: None }
    }

    /// Lays the position of a run over the drawing.
    #[must_use]
    pub fn at(mut self, progress: &Progress) -> Self {
        self.overlay = Some(Overlay::of(progress));
        self
    }

    /// A Mermaid flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        mermaid::write(self)
    }

    /// A digraph in Graphviz's language.
    #[must_use]
    pub fn to_dot(&self) -> String {
        dot::write(self)
    }

    /// Nodes, edges and clusters as data; `mark` of each node when a run is laid over.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::write(self)
    }

    /// A list for terminals.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    fn mark(&self, node: &str) -> Option<Mark> {
        self.overlay.as_ref().and_then(|overlay| overlay.mark(node))
    }

    /// The drawn ids of the nodes with a mark.
    fn marked(&self, mark: Mark) -> Vec<usize> {
        let nodes = (0..).zip(self.graph.nodes());
        let is_marked = nodes.filter(|(_, node)| self.mark(node.id()) == Some(mark));
        is_marked.map(|(index, _)| index).collect()
    }
}

impl CompiledGraph {
    /// The graph as a drawing, for a run's position over it.
    #[must_use]
    pub const fn drawing(&self) -> Drawing<'_> {
        Drawing::new(self)
    }

    /// The graph as a Mermaid flowchart.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.drawing().to_mermaid()
    }

    /// The graph as a digraph in Graphviz's language.
    #[must_use]
    pub fn to_dot(&self) -> String {
        self.drawing().to_dot()
    }

    /// The graph's nodes, edges and clusters as data.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.drawing().to_json()
    }

    /// The graph as a list for terminals.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.drawing().to_text()
    }
}
