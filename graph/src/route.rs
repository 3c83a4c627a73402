//! Edges and routes: how a node says where the run goes on.

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{END, State, strict};

/// A branch of its own at `node`, with an input that is put over its copy of the state.
///
/// The node may stand in a list of sends as often as there is work for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Send {
    pub(crate) node: String,
    pub(crate) input: Result<Map<String, Value>, String>,
}

impl Send {
    /// A branch at `node`; `input` is an object.
    pub fn new(node: impl Into<String>, input: impl Serialize) -> Self {
        let input = match strict::to_value(&input) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(other) => Err(format!("the input of a Send must be an object, not {other}")),
            Err(why) => Err(format!("the input of a Send{why}")),
        };
        Self { node: node.into(), input }
    }
}

/// What a route answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// One target; [`END`] or the empty text ends the run.
    One(String),
    /// Several targets at once; a target named twice runs once.
    Many(Vec<String>),
    /// A branch for each send; an empty list goes straight to the join.
    Sends(Vec<Send>),
}

impl From<&str> for Answered {
    fn from(node: &str) -> Self {
        Self::One(node.to_owned())
    }
}
impl From<String> for Answered {
    fn from(node: String) -> Self {
        Self::One(node)
    }
}
impl<T: Into<String>> From<Option<T>> for Answered {
    fn from(node: Option<T>) -> Self {
        Self::One(node.map_or_else(|| END.to_owned(), Into::into))
    }
}
impl From<Vec<Send>> for Answered {
    fn from(sends: Vec<Send>) -> Self {
        Self::Sends(sends)
    }
}
impl From<Vec<String>> for Answered {
    fn from(nodes: Vec<String>) -> Self {
        Self::Many(nodes)
    }
}
impl From<Vec<&str>> for Answered {
    fn from(nodes: Vec<&str>) -> Self {
        Self::Many(nodes.into_iter().map(str::to_owned).collect())
    }
}

/// A route's function: synchronous and pure; it sees the state after its node.
pub type EdgeCondition = Arc<dyn Fn(&State) -> Answered + std::marker::Send + Sync>;

/// An edge of a graph.
#[derive(Clone)]
pub enum Edge {
    /// Always taken. Several of one node are a fork.
    Plain {
        /// The target, or [`END`].
        to: String,
    },
    /// Asked after the node; its answers are among the declared targets.
    Route {
        /// The function.
        ask: EdgeCondition,
        /// Every target it may answer; [`END`] ends the run.
        targets: Vec<String>,
        /// Whether it may answer several at once.
        is_fan: bool,
    },
}

impl Edge {
    /// Every target that the edge may lead to.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        match self {
            Self::Plain { to } => std::slice::from_ref(to),
            Self::Route { targets, .. } => targets,
        }
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { to } => f.debug_struct("Plain").field("to", to).finish(),
            Self::Route { targets, is_fan, .. } => f
                .debug_struct("Route")
                .field("targets", targets)
                .field("is_fan", is_fan)
                .finish_non_exhaustive(),
        }
    }
}
