//! Three nodes in a row: the smallest program with the whole command line.
//!
//! ```text
//! cargo run --example hello -- enqueue hello --input '{"name":"Ann"}'
//! cargo run --example hello -- worker --exit-when-idle
//! cargo run --example hello -- runs list
//! ```

use std::process::ExitCode;

use holdpoint::{App, NodeContext, NodeError, State, StateGraph, Update};

/// Cleans the name up.
async fn trim(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let name: String = state.read("name")?;
    Ok(Update::new().set("name", name.trim()))
}

/// Makes the greeting.
async fn greet(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let name: String = state.read("name")?;
    Ok(Update::new().set("greeting", format!("Hello, {name}!")))
}

/// Counts its letters.
async fn measure(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let greeting: String = state.read("greeting")?;
    Ok(Update::new().set("length", greeting.chars().count()))
}

fn main() -> ExitCode {
    let hello = StateGraph::new("hello")
        .add_node("trim", trim)
        .add_node("greet", greet)
        .add_node("measure", measure)
        .add_edge("trim", "greet")
        .add_edge("greet", "measure")
        .set_entry_point("trim")
        .set_finish_point("measure")
        .compile();
    App::new().graph(hello).main()
}
