//! A nightly load that shows what changed since yesterday, and loads what a person signs off.
//!
//! ```text
//! cargo run --example etl_signoff                          # the whole night
//! cargo run --example etl_signoff -- audit sales-12-01     # what was shown to whom, and answered
//! cargo run --example etl_signoff -- runs state sales-12-01
//! ```
//!
//! Ann looks at the difference. While she thinks, a late row arrives: her answer was for other
//! numbers and is refused. She looks again, leaves a row out, and that is loaded.

use std::process::ExitCode;

use holdpoint::{
    App, Desk, Effect, Gate, InterruptView, NodeContext, NodeError, NodeOptions, Question, RunId,
    RunRequest, SignalOptions, State, StateGraph, Update,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The run of the night.
const RUN: &str = "sales-12-01";
/// What the shops have sent until midnight: (row, shop, cents).
const SENT: [(&str, &str, i64); 4] = [
    ("r1", "north", 18_250),
    ("r2", "north", 9_900),
    ("r3", "south", 1_240_000), // somebody forgot a decimal point
    ("r4", "west", 21_475),
];

#[derive(Clone, Serialize, Deserialize)]
struct Row {
    id: String,
    shop: String,
    cents: i64,
}

/// So many rows with such a sum.
#[derive(Serialize, Deserialize)]
struct Sum {
    rows: usize,
    cents: i64,
}

impl Sum {
    fn of(rows: &[Row]) -> Self {
        Self { rows: rows.len(), cents: rows.iter().map(|row| row.cents).sum() }
    }
}

/// Reads the rows of the day.
async fn extract(_: NodeContext, _: State) -> Result<Update, NodeError> {
    let row =
        |(id, shop, cents): (&str, &str, i64)| Row { id: id.into(), shop: shop.into(), cents };
    let rows: Vec<Row> = SENT.into_iter().map(row).collect();
    Ok(Update::new().set("rows", rows).set("exclude", json!([])))
}

/// Puts today beside yesterday.
async fn compare(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let rows: Vec<Row> = state.read("rows")?;
    Ok(Update::new().set("today", Sum::of(&rows)).set("largest", largest(&rows)))
}

fn largest(rows: &[Row]) -> Option<&Row> {
    rows.iter().max_by_key(|row| row.cents)
}

/// Writes the rows that were signed off: those that the answer did not exclude. The key is the
/// same in every attempt, so that the warehouse can tell a repeat from a second load.
async fn load(ctx: NodeContext, state: State) -> Result<Update, NodeError> {
    let exclude: Vec<String> = state.read("exclude")?;
    let mut rows: Vec<Row> = state.read("rows")?;
    rows.retain(|row| !exclude.contains(&row.id));
    let batch = format!("batch-{}", ctx.idempotency_key());
    Ok(Update::new().set("loaded", Sum::of(&rows)).set("batch", batch))
}

/// A rejected day leaves the tables as they were yesterday.
async fn keep_yesterday(_: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("kept", true))
}

fn graph() -> StateGraph {
    let question = Question::new("Load the sales of {day}?")
        .about(["yesterday", "today", "largest", "exclude"]) // shown, hashed, and decided on
        .edits(["exclude"]) // an answer may change this, and only this
        .comment_on("reject");
    let gate = Gate::new("sign-off", question).reject_to("keep_yesterday");
    let load_options = NodeOptions::new().effect(Effect::Idempotent).gate(gate);
    StateGraph::new("sales")
        .add_node("extract", extract)
        .add_node("compare", compare)
        .add_node_with("load", load_options, load)
        .add_node("keep_yesterday", keep_yesterday)
        .add_edge("extract", "compare")
        .add_edge("compare", "load")
        .set_entry_point("extract")
        .set_finish_point("load")
        .set_finish_point("keep_yesterday")
}

async fn process(desk: Desk) -> anyhow::Result<()> {
    let yesterday = Sum { rows: 4, cents: 61_300 };
    let input = json!({ "day": "2026-12-01", "yesterday": yesterday });
    let request = RunRequest::new("sales").input(input).run(RUN).key(RUN).allow_unknown();
    let run = desk.producer().enqueue(&request).await?.run;
    desk.work().await?;
    if let Some(seen) = show(&desk, &run).await? {
        sign_off(&desk, &run, &seen).await?;
        desk.work().await?;
    }
    let state = desk.producer().get(&run).await?.state;
    desk.say(format_args!("loaded: {}", state.get("loaded").unwrap_or(&json!(null))))
}

/// Prints the open question with what it is about; none when it is answered.
async fn show(desk: &Desk, run: &RunId) -> anyhow::Result<Option<InterruptView>> {
    let rows = desk.questions().await?;
    let Some(row) = rows.into_iter().find(|row| row.run == *run) else { return Ok(None) };
    desk.show(&row)?;
    Ok(Some(row.open))
}

/// Ann's answers name the hash of what she was shown.
async fn sign_off(desk: &Desk, run: &RunId, seen: &InterruptView) -> anyhow::Result<()> {
    let answer = |open: &InterruptView, set| {
        let answer = json!({ "choice": "edit", "set": set });
        let to = SignalOptions::run(run.as_str()).interrupt(open.interrupt.as_str());
        to.answer(answer).args_hash(&open.args_hash).by("ann")
    };
    arrives_late(desk, run).await?;
    desk.say("a late row has arrived, and ann answers what she was shown before:")?;
    desk.answer(&answer(seen, json!({ "exclude": ["r3"] }))).await?;
    let Some(now) = show(desk, run).await? else { return Ok(()) };
    desk.say("she looks again, and tries to change a number by hand:")?;
    desk.answer(&answer(&now, json!({ "today": { "rows": 4, "cents": 61_300 } }))).await?;
    desk.say("she leaves the odd row out, which the gate allows:")?;
    desk.answer(&answer(&now, json!({ "exclude": ["r3"] }))).await?;
    Ok(())
}

/// A shop sends one more row. The parked run is edited, and its question is shown anew.
async fn arrives_late(desk: &Desk, run: &RunId) -> anyhow::Result<()> {
    let view = desk.producer().get(run).await?;
    let mut rows: Vec<Row> = view.state.read("rows")?;
    rows.push(Row { id: "r5".into(), shop: "east".into(), cents: 12_000 });
    let update = json!({ "rows": rows, "today": Sum::of(&rows), "largest": largest(&rows) });
    let newest = view.seq.unwrap_or_default();
    desk.producer().edit(run, &update, newest, "late-feed").await?;
    Ok(())
}

fn main() -> ExitCode {
    App::new().graph(graph()).with_default(process).main()
}
