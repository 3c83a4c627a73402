//! The graphs of the worker processes, and what their nodes leave outside of any store.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    path::PathBuf,
};

use holdpoint::{
    AppendReducer, BoxFuture, CompiledGraph, END, Effect, Gate, NodeContext, NodeError,
    NodeOptions, Question, State, StateGraph, StateSchema, Update,
};
use serde_json::json;

/// What nodes leave outside of any store: the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Outside(PathBuf);

impl Outside {
    /// With the ledger in this file.
    pub(crate) fn at(ledger: impl Into<PathBuf>) -> Self {
        Self(ledger.into())
    }

    /// Appends a line to the ledger with one write. No sync: only processes die here.
    pub(crate) fn mark(&self, ctx: &NodeContext, effect: &str) -> Result<(), NodeError> {
        let line = json!({
            "run": ctx.run(), "session": ctx.session(), "graph": ctx.graph(), "node": ctx.node(),
            "visit": ctx.visit(), "attempt": ctx.attempt(), "epoch": ctx.epoch(),
            "effect": effect, "pid": std::process::id(), "at": ctx.idempotency_key(),
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        Ok(file.write_all(format!("{line}\n").as_bytes())?)
    }
}

impl Outside {
    /// Whether no owner of the task was there before.
    fn is_first(&self, ctx: &NodeContext) -> Result<bool, NodeError> {
        let file = self.0.with_file_name(format!("was-at-{}", ctx.idempotency_key()));
        match OpenOptions::new().create_new(true).write(true).open(file) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A node that leaves `start` and `done`, and does nothing else.
pub(crate) fn marking(
    outside: &Outside,
) -> impl Fn(NodeContext, State) -> std::future::Ready<Result<Update, NodeError>> + Clone + use<> {
    let outside = outside.clone();
    move |ctx, _| {
        let both = outside.mark(&ctx, "start").and_then(|()| outside.mark(&ctx, "done"));
        std::future::ready(both.map(|()| Update::new()))
    }
}

/// All of them.
pub(crate) fn all(outside: &Outside) -> Vec<CompiledGraph> {
    let graphs = [
        two_gates(outside),
        turns(outside),
        deep(outside),
        line(outside),
        latch(outside, "latch", Effect::Idempotent),
        latch(outside, "unsafe", Effect::Unsafe),
        branches(outside, "ab", &["a", "b"]),
        branches(outside, "ba", &["b", "a"]),
        branches(outside, "abc", &["a", "b", "c"]),
    ];
    graphs.into_iter().map(|graph| graph.compile().unwrap()).collect()
}

/// a → b → c.
fn line(outside: &Outside) -> StateGraph {
    StateGraph::new("line")
        .add_node("a", marking(outside))
        .add_node("b", marking(outside))
        .add_node("c", marking(outside))
        .add_edge("a", "b")
        .add_edge("b", "c")
        .set_entry_point("a")
        .set_finish_point("c")
}

/// Where the first owner of a node stays for good.
#[derive(Clone, Copy)]
enum Stays {
    Nowhere,
    BeforeItsEffect,
    BehindItsEffect,
}

/// A node with one effect, which leaves its name in `path`.
fn effect(
    outside: &Outside,
    stays: Stays,
) -> impl Fn(NodeContext, State) -> BoxFuture<'static, Result<Update, NodeError>> + use<> {
    let outside = outside.clone();
    move |ctx, _| {
        let outside = outside.clone();
        Box::pin(async move {
            let is_first = outside.is_first(&ctx)?;
            if is_first && matches!(stays, Stays::BeforeItsEffect) {
                std::future::pending::<()>().await;
            }
            outside.mark(&ctx, "effect")?;
            if is_first && matches!(stays, Stays::BehindItsEffect) {
                std::future::pending::<()>().await;
            }
            Ok(Update::new().set("path", ctx.node()))
        })
    }
}

fn paths() -> StateSchema {
    StateSchema::new().with("path", AppendReducer)
}

/// a → b → z; the first owner of b stays behind its effect.
fn latch(outside: &Outside, id: &str, class: Effect) -> StateGraph {
    let options = NodeOptions::new().effect(class);
    StateGraph::new(id)
        .with_schema(paths())
        .add_node("a", effect(outside, Stays::Nowhere))
        .add_node_with("b", options, effect(outside, Stays::BehindItsEffect))
        .add_node("z", effect(outside, Stays::Nowhere))
        .add_edge("a", "b")
        .add_edge("b", "z")
        .set_entry_point("a")
        .set_finish_point("z")
}

/// A fork of these branches, joined by z: of their first owners that of b stays before its effect,
/// and that of the unsafe c behind it.
fn branches(outside: &Outside, id: &str, names: &[&str]) -> StateGraph {
    let mut graph = StateGraph::new(id).with_schema(paths()).add_router("fork");
    for name in names {
        let (class, stays) = match *name {
            "b" => (Effect::Idempotent, Stays::BeforeItsEffect),
            "c" => (Effect::Unsafe, Stays::BehindItsEffect),
            _ => (Effect::Idempotent, Stays::Nowhere),
        };
        graph = graph
            .add_node_with(*name, NodeOptions::new().effect(class), effect(outside, stays))
            .add_edge("fork", *name)
            .add_edge(*name, "z");
    }
    graph
        .add_node("z", effect(outside, Stays::Nowhere))
        .set_entry_point("fork")
        .set_finish_point("z")
}

fn gated(name: &str) -> NodeOptions {
    NodeOptions::new().gate(Gate::new(name, Question::new("Go on?")))
}

/// a → gate 1 on b → gate 2 on z; b and z keep what their gate was answered.
fn two_gates(outside: &Outside) -> StateGraph {
    let keeping = |outside: &Outside| {
        let outside = outside.clone();
        move |ctx: NodeContext, _: State| {
            let answer = ctx.answer().map(|answer| answer.value["n"].clone()).unwrap_or_default();
            let update = Update::new().set(ctx.node(), answer);
            std::future::ready(outside.mark(&ctx, "done").map(|()| update))
        }
    };
    StateGraph::new("two")
        .add_node("a", marking(outside))
        .add_node_with("b", gated("one"), keeping(outside))
        .add_node_with("z", gated("two"), keeping(outside))
        .add_edge("a", "b")
        .add_edge("b", "z")
        .set_entry_point("a")
        .set_finish_point("z")
}

/// before → (gate) turn, again and again until `n` answers were taken.
fn turns(outside: &Outside) -> StateGraph {
    let turn = |ctx: NodeContext, _: State| async move {
        let answer = ctx.answer().map(|answer| answer.value.clone()).unwrap_or_default();
        Ok::<_, NodeError>(Update::new().set("answers", answer))
    };
    let route = |state: &State| {
        let count = state.get("answers").and_then(|all| all.as_array()).map_or(0, Vec::len) as u64;
        let is_last = state.get("n").and_then(serde_json::Value::as_u64) == Some(count);
        if is_last { END } else { "turn" }
    };
    StateGraph::new("turns")
        .with_schema(StateSchema::new().with("answers", AppendReducer))
        .add_node("before", marking(outside))
        .add_interrupt_node("turn", turn)
        .add_edge("before", "turn")
        .add_conditional_edge("turn", route, ["turn", END])
        .set_entry_point("before")
}

/// before → asks: one node that does a step and then asks `n` questions.
fn deep(outside: &Outside) -> StateGraph {
    let kept = outside.clone();
    let asks = move |ctx: NodeContext, state: State| {
        let outside = kept.clone();
        async move {
            ctx.step("effect", || async { outside.mark(&ctx, "effect") }).await?;
            let mut answers = Vec::new();
            for at in 0..state.read::<u64>("n")? {
                let question = Question::new(format!("What is answer {at}?"));
                answers.push(ctx.ask(&format!("q{at}"), question).await?.value);
            }
            outside.mark(&ctx, "done")?;
            Ok::<_, NodeError>(Update::new().set("answers", answers))
        }
    };
    StateGraph::new("deep")
        .add_node("before", marking(outside))
        .add_node("asks", asks)
        .add_edge("before", "asks")
        .set_entry_point("before")
        .set_finish_point("asks")
}
