//! Orders that are charged and shipped: small ones at once, others when one person has approved
//! them, and big ones when two have.
//!
//! ```text
//! cargo run --example order_approval                        # the day's orders, end to end
//! cargo run --example order_approval -- gates               # what waits for a person
//! cargo run --example order_approval -- approve order-1002
//! cargo run --example order_approval -- approve order-1004 --by ann    # one vote of two
//! cargo run --example order_approval -- worker              # a worker of its own
//! ```
//!
//! The second vote by a link, for somebody who has a browser or a mail program and no terminal:
//!
//! ```text
//! cargo run --example order_approval -- gates new-key 2026 > link.keys
//! cargo run --example order_approval -- gates link order-1004 --by cfo --keys link.keys
//! cargo run --example order_approval -- gates redeem TOKEN --approve --keys link.keys
//! ```
//!
//! Kill it wherever you like and start it again: nothing is charged twice, nothing is forgotten.

use std::process::ExitCode;

use holdpoint::{
    App, Desk, Effect, Gate, NodeContext, NodeError, NodeOptions, Question, RunId, RunRequest,
    RunStatus, SignalOptions, State, StateGraph, Update,
};
use serde::Deserialize;

/// Orders above this many cents need a person.
const ONE_PERSON_CENTS: u64 = 50_000;
/// Orders above this many cents need two.
const TWO_PEOPLE_CENTS: u64 = 150_000;

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

/// Runs once its gate is open; keeps who opened it.
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

/// Where an order goes on, by its size.
fn by_size(state: &State) -> &'static str {
    match state.read::<u64>("cents") {
        Ok(cents) if cents <= ONE_PERSON_CENTS => "charge",
        Ok(cents) if cents <= TWO_PEOPLE_CENTS => "approved",
        Ok(_) | Err(_) => "approved_by_two",
    }
}

fn graph() -> StateGraph {
    let question = Question::new("Charge {total} to {customer} for {order}?").comment_on("reject");
    let one = Gate::new("approval", question.clone()).reject_to("refuse");
    let two = Gate::new("two-approvals", question.quorum(2)).reject_to("refuse");
    StateGraph::new("order")
        .add_node("validate", validate)
        .add_node_with("approved", NodeOptions::new().gate(one), approved)
        .add_node_with("approved_by_two", NodeOptions::new().gate(two), approved)
        .add_node_with("charge", NodeOptions::new().effect(Effect::Unsafe), charge)
        .add_node("ship", ship)
        .add_node("refuse", refuse)
        .add_conditional_edge("validate", by_size, ["charge", "approved", "approved_by_two"])
        .add_edge("approved", "charge")
        .add_edge("approved_by_two", "charge")
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
        // The order's number is the run's id and key, so that a second start finds it there.
        let request = RunRequest::new("order").state(order).run(&id).key(&id).allow_unknown();
        let receipt = desk.producer().enqueue(&request).await?;
        if !receipt.created {
            desk.say(format_args!("{id} is known"))?;
        }
        runs.push(receipt.run);
    }
    desk.work().await?;
    let questions = desk.questions().await?;
    for row in questions.iter().filter(|row| row.graph.as_str() == "order") {
        desk.show(row)?;
        let said = if desk.has_person() { desk.ask(&row.open.question)? } else { None };
        let signal = SignalOptions::run(row.run.as_str()).interrupt(row.open.interrupt.as_str());
        let signal = signal.by("terminal");
        match said {
            Some(true) => drop(desk.answer(&signal.approve()).await?),
            Some(false) => {
                let why = desk.read("Why not?")?;
                desk.answer(&signal.reject().comment(why)).await?;
            }
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
