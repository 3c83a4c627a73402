//! What can be wrong with a graph.

use std::fmt;

use serde::Serialize;

use crate::{Code, printable, shown};

/// One fault of a graph, or one warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphFault {
    /// The stable code, such as `unknown_target`.
    pub code: &'static str,
    /// The node, edge or key.
    pub node: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl GraphFault {
    pub(crate) fn new(
        code: &'static str,
        node: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { code, node: node.into(), message: message.into(), fix: fix.into() }
    }
}

impl fmt::Display for GraphFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = printable(&self.node, 80);
        let (message, fix) = (printable(&self.message, 300), printable(&self.fix, 300));
        write!(f, "{}: {node}: {message}; {fix}", self.code)
    }
}

/// All faults of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphFaults {
    /// The graph's id, as it was given.
    pub graph: String,
    /// The faults, in the order of the graph.
    pub faults: Vec<GraphFault>,
}

impl GraphFaults {
    /// The stable code of the whole.
    #[must_use]
    pub fn code(&self) -> Code {
        let has = |code: &str| self.faults.iter().any(|fault| fault.code == code);
        match (has("limit"), has("subgraph_cycle")) {
            (true, _) => Code::GraphLimit,
            (false, true) => Code::GraphCycleSubgraph,
            (false, false) => Code::Graph,
        }
    }
}

impl fmt::Display for GraphFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.faults.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "graph {} has {count} fault{s}", shown(&self.graph, 80))?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for GraphFaults {}
