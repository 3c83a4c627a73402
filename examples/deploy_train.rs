//! Releases that go out behind two gates: four eyes before the canary, a choice after it.
//!
//! ```text
//! build → test → [four-eyes] → canary → [watch] → promote
//!                     └ no → call_off       └ rollback, no, or nobody → roll_back
//! ```
//!
//! ```text
//! cargo run --example deploy_train                       # two releases, end to end
//! cargo run --example deploy_train -- audit web-41       # who let it out
//! cargo run --example deploy_train -- graphs show train  # the drawing
//! ```
//!
//! By hand, in as many terminals as you like:
//!
//! ```text
//! cargo run --example deploy_train -- enqueue train --run web-43 \
//!     --input '{"release":"web-43","requested_by":"dora","canary_errors":12}'
//! cargo run --example deploy_train -- worker
//! cargo run --example deploy_train -- approve web-43 --by eli
//! cargo run --example deploy_train -- signal web-43 --answer '{"choice":"promote"}' --by eli
//! ```

use std::{process::ExitCode, time::Duration};

use holdpoint::{
    App, Desk, Effect, Gate, NodeContext, NodeError, NodeOptions, Question, RunId, RunRequest,
    SignalOptions, State, StateGraph, Update,
};
use serde_json::json;

/// Up to so many errors in 10,000 requests a canary is promoted.
const ERRORS_MAX: u64 = 20;

async fn build(ctx: NodeContext, state: State) -> Result<Update, NodeError> {
    let release: String = state.read("release")?;
    Ok(Update::new().set("image", format!("{release}@{}", ctx.idempotency_key())))
}

async fn test(_: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("tests", "412 passed"))
}

/// Gives the image 5 % of the traffic and counts. The demo's traffic stands in the input.
async fn canary(ctx: NodeContext, state: State) -> Result<Update, NodeError> {
    let errors: u64 = state.read("canary_errors")?;
    let let_out_by = ctx.answer().map(|answer| answer.by.clone());
    Ok(Update::new().set("errors", errors).set("let_out_by", let_out_by))
}

async fn promote(_: NodeContext, state: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("live", state.read::<String>("image")?))
}

async fn roll_back(_: NodeContext, state: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("rolled_back", state.read::<String>("image")?))
}

async fn call_off(_: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("called_off", true))
}

fn graph() -> StateGraph {
    let four_eyes = Question::new("{requested_by} wants to let {release} out ({tests}). Go?")
        .about(["image", "tests"])
        .not_by("requested_by") // the state names who may not answer
        .comment_on("reject");
    let four_eyes = Gate::new("four-eyes", four_eyes).reject_to("call_off");
    // A choice without a route runs the gated node; a canary that nobody watches goes back.
    let watch = Question::new("{release} had {errors} errors in 10000 requests. Promote it?")
        .about(["image", "errors"])
        .choice("promote")
        .choice("rollback")
        .deadline(Duration::from_secs(3600), json!({ "choice": "rollback" }));
    let watch = Gate::new("watch", watch).route("rollback", "roll_back").reject_to("roll_back");
    // What touches production is unsafe: a crash inside asks a person instead of doing it again.
    let production = |gate| NodeOptions::new().effect(Effect::Unsafe).gate(gate);
    StateGraph::new("train")
        .add_node("build", build)
        .add_node("test", test)
        .add_node_with("canary", production(four_eyes), canary)
        .add_node_with("promote", production(watch), promote)
        .add_node("roll_back", roll_back)
        .add_node("call_off", call_off)
        .add_edge("build", "test")
        .add_edge("test", "canary")
        .add_edge("canary", "promote")
        .set_entry_point("build")
        .set_finish_point("promote")
        .set_finish_point("roll_back")
        .set_finish_point("call_off")
}

/// One release that does well, and one that does not.
async fn process(desk: Desk) -> anyhow::Result<()> {
    for (release, errors) in [("web-41", 3), ("web-42", 61)] {
        let input = json!({ "release": release, "requested_by": "dora", "canary_errors": errors });
        let request = RunRequest::new("train").input(input).run(release).key(release);
        if !desk.producer().enqueue(&request.allow_unknown()).await?.created {
            desk.say(format_args!("{release} is known"))?;
            continue;
        }
        desk.work().await?;
        desk.say("dora approves her own release:")?;
        let approve = SignalOptions::run(release).gate("four-eyes").approve();
        desk.answer(&approve.clone().by("dora")).await?;
        desk.say("eli approves it:")?;
        desk.answer(&approve.by("eli")).await?;
        desk.work().await?;
        watch(&desk, release).await?;
        desk.work().await?;
    }
    Ok(())
}

/// Looks at what the question is about, and decides on exactly that.
async fn watch(desk: &Desk, release: &str) -> anyhow::Result<()> {
    let view = desk.producer().get(&RunId::new(release)?).await?;
    for open in view.interrupts.iter().filter(|open| open.gate.as_deref() == Some("watch")) {
        let errors: u64 = view.state.read("errors")?;
        let choice = if errors <= ERRORS_MAX { "promote" } else { "rollback" };
        desk.say(format_args!("{errors} errors, so eli says {choice}:"))?;
        let signal = SignalOptions::run(release).interrupt(open.interrupt.as_str());
        let signal = signal.answer(json!({ "choice": choice })).args_hash(&open.args_hash);
        desk.answer(&signal.by("eli")).await?;
    }
    Ok(())
}

fn main() -> ExitCode {
    App::new().graph(graph()).with_default(process).main()
}
