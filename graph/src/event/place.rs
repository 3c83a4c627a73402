//! Places of a run: tasks, and where it goes on behind them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The reserved target that ends a run.
pub const END: &str = "__end__";
/// The reserved source of the entry's edge.
pub const START: &str = "__start__";

/// A task of a run: one coming of the run to a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskRef {
    /// The node.
    pub node: String,
    /// How often the run has come to the node, from 1.
    pub visit: u32,
    /// The index of the branch at each level of fork, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branch: Vec<u32>,
}

/// Where a branch goes on, as data: the answer of edges, routes and gotos.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// To one node, or to [`END`].
    To(String),
    /// To several at once.
    Fork(Fork),
    /// The route failed; the run fails, and a redrive asks the route again.
    Unresolved(String),
}

/// A fork: its branches and the node where they meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The node where the branches meet, or [`END`].
    pub join: String,
    /// The branches in order.
    pub branches: Vec<BranchStart>,
}

/// How a branch begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchStart {
    /// At a node; `input` is put over the branch's copy of the state.
    Node {
        /// The node.
        node: String,
        /// What a `Send` brought along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Map<String, Value>>,
    },
    /// As a fork of its own, whose branches meet before the outer ones do.
    Fork(Fork),
    /// The target is the join itself: nothing to do.
    Join,
}
