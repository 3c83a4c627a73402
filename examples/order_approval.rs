//! Orders that are charged and shipped, and the big ones only after somebody has approved them.
//!
//! ```text
//! cargo run --example order_approval                        # the day's orders, end to end
//! cargo run --example order_approval -- gates               # what waits for a person
//! cargo run --example order_approval -- approve order-1002
//! cargo run --example order_approval -- worker              # a worker of its own
//! ```
//!
//! Kill it wherever you like and start it again: nothing is charged twice, nothing is forgotten.

use std::process::ExitCode;

use holdpoint::{
    App, Desk, Effect, Gate, NodeContext, NodeError, NodeOptions, ProducerError, Question, RunId,
    RunRequest, RunStatus, SignalOptions, State, StateGraph, Update,
};
use serde::Deserialize;

/// Orders above this many cents need a person.
const LIMIT_CENTS: u64 = 50_000;

/// What comes in: items are (name, count, price in cents).
#[derive(Deserialize)]
struct Order {
    order: String,
    items: Vec<(String, u64, u64)>,
}

/// Adds the order up. What is wrong with it stays wrong, so no retry helps.
async fn validate(_: NodeContext, order: Order) -> Result<Update, NodeError> {
    if let Some((name, ..)) = order.items.iter().find(|(_, count, _)| *count == 0) {
        return Err(NodeError::permanent(format!("{} orders no {name}", order.order)));
    }
    let total: u64 = order.items.iter().map(|(_, count, price)| count * price).sum();
    let shown = format!("{}.{:02} EUR", total / 100, total % 100);
    Ok(Update::new().set("cents", total).set("total", shown))
}

/// Runs once the gate is open; keeps who opened it.
async fn approved(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("approved_by", ctx.answer().map(|answer| answer.by.clone())))
}

/// Takes the money. The node is unsafe: a crash in here asks a person instead of charging again.
async fn charge(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("payment", format!("pay-{}", ctx.idempotency_key())))
}

async fn ship(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("parcel", format!("parcel-of-{}", ctx.run())))
}

async fn refuse(_: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("refused", true))
}

fn graph() -> StateGraph {
    let question = Question::new("Charge {total} to {customer} for {order}?");
    let gate = Gate::new("approval", question).reject_to("refuse");
    let size = |state: &State| match state.read::<u64>("cents") {
        Ok(cents) if cents <= LIMIT_CENTS => "charge",
        Ok(_) | Err(_) => "approved",
    };
    StateGraph::new("order")
        .add_node("validate", validate)
        .add_node_with("approved", NodeOptions::new().gate(gate), approved)
        .add_node_with("charge", NodeOptions::new().effect(Effect::Unsafe), charge)
        .add_node("ship", ship)
        .add_node("refuse", refuse)
        .add_conditional_edge("validate", size, ["charge", "approved"])
        .add_edge("approved", "charge")
        .add_edge("charge", "ship")
        .set_entry_point("validate")
        .set_finish_point("ship")
        .set_finish_point("refuse")
}

/// Enqueues the orders, runs them, and asks about the ones that wait.
async fn process(desk: Desk) -> anyhow::Result<()> {
    let orders: Vec<State> = serde_json::from_str(include_str!("orders.json"))?;
    let mut runs = Vec::new();
    for order in orders {
        let id: String = order.read("order")?;
        // The order's number is the run's id, so that a second start finds it there.
        let request = RunRequest::new("order").state(order).run(&id).allow_unknown();
        match desk.producer().enqueue(&request).await {
            Err(ProducerError::RunExists { .. }) => desk.say(format_args!("{id} is known"))?,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        runs.push(RunId::new(&id)?);
    }
    desk.work().await?;
    let questions = desk.questions().await?;
    for row in questions.iter().filter(|row| row.graph.as_str() == "order") {
        desk.show(row)?;
        let said = if desk.has_person() { desk.ask(&row.open.question)? } else { None };
        let signal = SignalOptions::run(row.run.as_str()).interrupt(row.open.interrupt.as_str());
        match said {
            Some(true) => drop(desk.producer().signal(&signal.approve().by("terminal")).await?),
            Some(false) => drop(desk.producer().signal(&signal.reject().by("terminal")).await?),
            None => {}
        }
    }
    desk.work().await?;
    summary(&desk, &runs).await
}

async fn summary(desk: &Desk, runs: &[RunId]) -> anyhow::Result<()> {
    for status in RunStatus::ALL {
        let mut names = Vec::new();
        for run in runs {
            let is_it = desk.producer().get(run).await?.status == status;
            names.extend(is_it.then(|| run.to_string()));
        }
        if !names.is_empty() {
            desk.say(format_args!("{}: {}", status.as_str(), names.join(", ")))?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    App::new().graph(graph()).with_default(process).main()
}
