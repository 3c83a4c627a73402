//! New customers whose papers two people must check: votes, a reminder, and a deadline.
//!
//! ```text
//! KYC_HOUR=100ms cargo run --example kyc_onboarding   # all of it in a few seconds
//! cargo run --example kyc_onboarding                  # the same with real hours
//! cargo run --example kyc_onboarding -- audit kyc-ada  # who said what, when
//! ```
//!
//! With real hours the customers whom nobody decides on stay parked, without any process. Any
//! worker reminds and ends them in time, and anybody who is asked answers from the command line:
//!
//! ```text
//! cargo run --example kyc_onboarding -- worker
//! cargo run --example kyc_onboarding -- approve kyc-bo --by ann --group compliance
//! ```

use std::{process::ExitCode, time::Duration};

use holdpoint::{
    App, Desk, Gate, NodeContext, NodeError, NodeOptions, Question, RunId, RunRequest,
    SignalOptions, State, StateGraph, Until, Update, parse_duration,
};
use serde_json::json;

/// The papers without which nobody is asked at all.
const NEEDED: [&str; 2] = ["passport", "proof of address"];

/// Looks through the papers, so that people are asked about complete ones only.
async fn collect(_: NodeContext, state: State) -> Result<Update, NodeError> {
    let papers: Vec<String> = state.read("papers")?;
    if let Some(paper) = NEEDED.iter().find(|needed| !papers.iter().any(|has| has == *needed)) {
        return Err(NodeError::permanent(format!("the {paper} is missing")));
    }
    Ok(Update::new().set("checked", papers.len()))
}

/// Runs when two people have said yes; the answer is the one that decided.
async fn open_account(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    let last = ctx.answer().map(|answer| answer.by.clone());
    Ok(Update::new().set("account", format!("acc-{}", ctx.idempotency_key())).set("second", last))
}

/// Runs when one has said no, or when nobody has decided in time.
async fn decline(_: NodeContext, _: State) -> Result<Update, NodeError> {
    Ok(Update::new().set("declined", true))
}

fn graph(hour: Duration) -> StateGraph {
    let question = Question::new("Open an account for {customer}?")
        .about(["customer", "papers"]) // the votes are for these papers and no others
        .group("compliance")
        .closed() // only those who are asked may answer
        .quorum(2) // two different people must say the same
        .comment_on("reject")
        .remind(hour * 24, ["head-of-compliance"]) // asked too from then on
        .deadline(hour * 72, json!({ "approve": false }));
    let gate = Gate::new("papers", question).reject_to("decline");
    StateGraph::new("kyc")
        .add_node("collect", collect)
        .add_node_with("open_account", NodeOptions::new().gate(gate), open_account)
        .add_node("decline", decline)
        .add_edge("collect", "open_account")
        .set_entry_point("collect")
        .set_finish_point("open_account")
        .set_finish_point("decline")
}

/// Two customers. A worker runs beside it all, as it would in another process.
async fn process(desk: Desk, hour: Duration) -> anyhow::Result<()> {
    desk.work_while(async {
        let (ada, is_new) = arrive(&desk, "kyc-ada", "Ada Moreau").await?;
        if is_new {
            vote(&desk, &ada).await?;
        }
        let (bo, is_new) = arrive(&desk, "kyc-bo", "Bo Lindqvist").await?;
        if is_new && hour < Duration::from_secs(1) {
            desk.say("nobody looks at Bo's papers …")?;
            desk.producer().wait(&bo, Until::Terminal, None).await?;
        }
        Ok(())
    })
    .await?;
    for id in ["kyc-ada", "kyc-bo"] {
        let view = desk.producer().get(&RunId::new(id)?).await?;
        let end = match (view.state.get("account"), view.state.get("declined")) {
            (Some(_), _) => "has an account",
            (None, Some(_)) => "was declined",
            (None, None) => "waits for an answer",
        };
        desk.say(format_args!("{id} {end}"))?;
    }
    Ok(())
}

/// A customer brings papers. The id is the key too: a second start finds the first one's run.
async fn arrive(desk: &Desk, id: &str, name: &str) -> anyhow::Result<(RunId, bool)> {
    let customer = State::new().with("customer", name).with("papers", NEEDED.to_vec());
    let request = RunRequest::new("kyc").state(customer).run(id).key(id).allow_unknown();
    let receipt = desk.producer().enqueue(&request).await?;
    desk.producer().wait(&receipt.run, Until::Parked, None).await?;
    Ok((receipt.run, receipt.created))
}

/// Four people answer, and two of the answers count.
async fn vote(desk: &Desk, run: &RunId) -> anyhow::Result<()> {
    let answer = || SignalOptions::run(run.as_str()).gate("papers").approve();
    let by = |who: &str| answer().by(who).group("compliance");
    desk.say("ivo from sales tries:")?;
    desk.answer(&answer().by("ivo").group("sales")).await?;
    desk.say("ann from compliance votes, twice:")?;
    desk.answer(&by("ann")).await?;
    desk.answer(&by("ann")).await?;
    desk.say("ben from compliance votes:")?;
    desk.answer(&by("ben")).await?;
    desk.producer().wait(run, Until::Terminal, None).await?;
    Ok(())
}

/// How long an hour takes; `KYC_HOUR` shortens it for those who want to see the deadline.
fn hour() -> Result<Duration, holdpoint::Refusal> {
    match std::env::var("KYC_HOUR") {
        Ok(text) => parse_duration("KYC_HOUR", &text),
        Err(_) => Ok(Duration::from_secs(3600)),
    }
}

fn main() -> ExitCode {
    match hour() {
        Ok(hour) => {
            App::new().graph(graph(hour)).with_default(move |desk| process(desk, hour)).main()
        }
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::from(2)
        }
    }
}
