//! A map over a list: one branch per word, then a join that sees all results in order.
//!
//! ```text
//! cargo run --example fan_out -- enqueue fan_out --input '{"words":["red","green","blue"]}'
//! cargo run --example fan_out -- worker --exit-when-idle
//! cargo run --example fan_out -- runs list
//! ```
//!
//! Each branch is committed on its own: a worker that dies repeats only the branches it was in.

use std::process::ExitCode;

use holdpoint::{
    App, AppendReducer, NodeContext, NodeError, Send, State, StateGraph, StateSchema, Update,
};
use serde_json::json;

/// Checks the list before it is spread.
async fn plan(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let words: Vec<String> = state.read("words").map_err(NodeError::permanent)?;
    Ok(Update::new().set("expected", words.len()))
}

/// One branch for each word; the branch sees its own word under the key `word`.
fn each_word(state: &State) -> Vec<Send> {
    let words: Vec<String> = state.read("words").unwrap_or_default();
    words.into_iter().map(|word| Send::new("shout", json!({ "word": word }))).collect()
}

/// The work on one word. The key `loud` appends, so branches never overwrite each other.
async fn shout(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let word: String = state.read("word")?;
    Ok(Update::new().set("loud", vec![word.to_uppercase()]))
}

/// Runs once, after all branches; the list is in the order of the words, whoever was first.
async fn join(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let loud: Vec<String> = state.read("loud").unwrap_or_default();
    Ok(Update::new().set("sentence", loud.join(" ")))
}

fn main() -> ExitCode {
    let graph = StateGraph::new("fan_out")
        .with_schema(StateSchema::new().with("loud", AppendReducer))
        .add_node("plan", plan)
        .add_node("shout", shout)
        .add_node("join", join)
        .add_fan_edge("plan", each_word, ["shout"])
        .add_edge("shout", "join")
        .set_entry_point("plan")
        .set_finish_point("join")
        .compile();
    App::new().graph(graph).main()
}
