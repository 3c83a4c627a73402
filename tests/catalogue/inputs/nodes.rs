//! Graphs that fail when they run: a good node, then a bad one.

use std::{collections::BTreeMap, future::Future, panic::panic_any, time::Duration};

use holdpoint::{
    END, IntoUpdate, NodeContext, NodeError, NodeOptions, RetryPolicy, State, StateGraph, Update,
};
use serde_json::{Value, json};

use super::{Input, Node, requests::deep};

pub(crate) fn make(name: &str) -> Option<Input> {
    let node = match name {
        "route_that_panics" => routed(|_| -> &str { panic!("no way from here") }),
        "route_to_an_undeclared_node" => routed(|_| "ghost"),
        "cycle_without_end" => endless(),
        "branches_that_write_one_key" => conflict(),
        _ => Node { graph: bad(name)?, max_steps: None, kept: json!({ "kept": 1 }) },
    };
    Some(Input::Node(Box::new(node)))
}

/// good → bad, where `bad` has one attempt.
fn after_good<R, F, Fut>(options: NodeOptions, bad: F) -> StateGraph
where
    R: IntoUpdate + 'static,
    F: Fn(NodeContext, State) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, NodeError>> + Send + 'static,
{
    StateGraph::new("nodes")
        .add_node("good", |_: NodeContext, _: State| async { Ok(Update::new().set("kept", 1)) })
        .add_node_with("bad", options.retry(RetryPolicy::once()), bad)
        .add_edge("good", "bad")
        .set_entry_point("good")
        .set_finish_point("bad")
}

/// A bad node that returns `value` under the key `bad`.
fn giving(value: impl Fn() -> Value + Send + Sync + 'static) -> StateGraph {
    after_good(NodeOptions::new(), move |_, _| {
        let update = Update::new().set("bad", value());
        async move { Ok(update) }
    })
}

/// A bad node that gives a number that JSON has not.
fn number(number: f64) -> StateGraph {
    after_good(NodeOptions::new(), move |_, _| async move {
        let list = BTreeMap::from([("inner", vec![1.0, number])]);
        Ok(Update::new().set("reading", list))
    })
}

fn bad(name: &str) -> Option<StateGraph> {
    let plain = NodeOptions::new;
    Some(match name {
        "value_200_deep" => giving(|| deep(200)),
        "value_65_deep_in_the_state" => giving(|| deep(64)),
        "not_a_number" => number(f64::NAN),
        "infinity" => number(f64::NEG_INFINITY),
        "state_over_4_mib" => giving(|| json!("x".repeat(4 << 20))),
        "node_error" => after_good::<(), _, _>(plain(), |_, _| async {
            Err(NodeError::permanent("the card \u{1b}[2J is refused"))
        }),
        "node_that_panics" => {
            after_good::<(), _, _>(plain(), |_, _| async { panic!("out of luck") })
        }
        "node_that_panics_without_words" => {
            after_good::<(), _, _>(plain(), |_, _| async { panic_any(7_u8) })
        }
        "node_that_never_returns" => {
            let options = plain().timeout(Duration::from_millis(20));
            after_good::<(), _, _>(options, |_, _| std::future::pending())
        }
        _ => return None,
    })
}

/// good → bad, which writes, and whose route is `route`.
fn routed<T: Into<String>>(route: impl Fn(&State) -> T + Send + Sync + 'static) -> Node {
    let graph = StateGraph::new("nodes")
        .add_node("good", |_: NodeContext, _: State| async { Ok(Update::new().set("kept", 1)) })
        .add_node("bad", |_: NodeContext, _: State| async { Ok(Update::new().set("bad", 1)) })
        .add_edge("good", "bad")
        .add_conditional_edge("bad", move |state| route(state).into(), [END])
        .set_entry_point("good");
    Node { graph, max_steps: None, kept: json!({ "kept": 1, "bad": 1 }) }
}

fn endless() -> Node {
    let count = |_: NodeContext, state: State| async move {
        let n = state.read::<Option<u64>>("n")?.unwrap_or(0);
        Ok(Update::new().set("n", n + 1))
    };
    let graph = StateGraph::new("nodes")
        .add_node("count", count)
        .add_conditional_edge("count", |_| "count", ["count", END])
        .set_entry_point("count");
    Node { graph, max_steps: Some(20), kept: json!({ "n": 20 }) }
}

fn conflict() -> Node {
    let write = |value: &'static str| {
        move |_: NodeContext, _: State| async move { Ok(Update::new().set("v", value)) }
    };
    let graph = StateGraph::new("nodes")
        .add_node("good", |_: NodeContext, _: State| async { Ok(Update::new().set("kept", 1)) })
        .add_node("left", write("l"))
        .add_node("right", write("r"))
        .add_node("join", |_: NodeContext, _: State| async { Ok(()) })
        .add_edge("good", "left")
        .add_edge("good", "right")
        .add_edge("left", "join")
        .add_edge("right", "join")
        .set_entry_point("good")
        .set_finish_point("join");
    Node { graph, max_steps: None, kept: json!({ "kept": 1 }) }
}
