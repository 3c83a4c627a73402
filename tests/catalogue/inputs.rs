//! The inputs that are values of the library, by the names that the data gives them.

#[path = "inputs/calls.rs"]
mod calls;
#[path = "inputs/graphs.rs"]
mod graphs;
#[path = "inputs/nodes.rs"]
mod nodes;
#[path = "inputs/requests.rs"]
mod requests;

use std::pin::Pin;

use holdpoint::{Refusal, RunRequest, SignalOptions, StateGraph, WorkerConfig};
use serde_json::Value;

use crate::library::{Answer, Bench};

/// What a row hands to the library.
pub(crate) enum Input {
    /// Goes to `Producer::enqueue`.
    Request(Box<RunRequest>),
    /// Goes to `Producer::enqueue_batch`.
    Batch(Vec<RunRequest>),
    /// Goes to `Producer::signal`.
    Signal(Box<SignalOptions>),
    /// Is compiled.
    Graph(Box<StateGraph>),
    /// Is run to its end.
    Node(Box<Node>),
    /// Is checked.
    Worker(Box<WorkerConfig>),
    /// Was checked where it was made.
    Made(Result<(), Refusal>),
    /// Calls what it needs by itself.
    Call(Call),
}

/// A call of the library on a bench.
pub(crate) type Call = for<'a> fn(&'a Bench) -> Pin<Box<dyn Future<Output = Answer> + 'a>>;

/// A graph that fails when it runs.
pub(crate) struct Node {
    pub(crate) graph: StateGraph,
    /// The most steps, when there is a limit.
    pub(crate) max_steps: Option<u64>,
    /// The state that stands afterwards.
    pub(crate) kept: Value,
}

/// The input of this name.
pub(crate) fn make(name: &str) -> Option<Input> {
    let makers = [requests::make, graphs::make, nodes::make, calls::make];
    makers.iter().find_map(|make| make(name))
}
