//! Answers as a type of the user's: what does not fit is refused with its path, and what does is
//! read back as it was meant.

use std::sync::Arc;

use holdpoint::{
    Location, Namespace, NodeContext, NodeError, Producer, Question, RunStatus, Runner, SessionId,
    SignalOptions, SqliteConfig, SqliteStore, State, StateGraph, Store, Update,
    schemars::JsonSchema,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "holdpoint::schemars")]
#[serde(deny_unknown_fields)]
struct Refund {
    amount: u32,
    why: Why,
    lines: Vec<Line>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "holdpoint::schemars")]
#[serde(rename_all = "snake_case")]
enum Why {
    Damaged,
    TooLate,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "holdpoint::schemars")]
struct Line {
    item: String,
    #[serde(default)]
    count: u8,
}

async fn refund(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    let question = Question::new("Refund how much?").schema_of::<Refund>();
    let refund: Refund = ctx.ask("refund", question).await?.read()?;
    let damaged = refund.why == Why::Damaged;
    Ok(Update::new().set("refund", refund).set("damaged", damaged))
}

#[tokio::test]
async fn an_answer_fits_the_type_that_the_node_reads() {
    let config = SqliteConfig::new(Location::Memory, Namespace::new("test").unwrap());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(config).await.unwrap());
    let graph = StateGraph::new("refund")
        .add_node("refund", refund)
        .set_entry_point("refund")
        .set_finish_point("refund")
        .compile()
        .unwrap();
    let runner = || Runner::new(graph.clone(), Arc::clone(&store));
    let session = SessionId::new("s").unwrap();
    let parked = runner().run(session.clone(), State::new()).await.unwrap();
    assert_eq!(parked.status, RunStatus::Parked);

    let producer = Producer::new(Arc::clone(&store));
    let signal = |answer: Value| SignalOptions::run(parked.run_id.as_str()).answer(answer);
    let good = json!({ "amount": 5, "why": "damaged", "lines": [{ "item": "cup" }] });
    for (key, bad, field) in [
        ("amount", json!("5"), "answer/amount"),
        ("amount", json!(-5), "answer/amount"),
        ("why", json!("broken"), "answer/why"),
        ("lines", json!([{ "item": "cup" }, { "item": 7 }]), "answer/lines/1/item"),
        ("lines", json!([{ "count": 1 }]), "answer/lines/0"),
        ("line", json!([]), "answer"),
    ] {
        let mut answer = good.clone();
        answer[key] = bad;
        let refused = producer.signal(&signal(answer)).await.unwrap_err();
        assert_eq!((refused.code().as_str(), refused.field()), ("E_SCHEMA", field));
    }
    producer.signal(&signal(good)).await.unwrap();
    let done = runner().resume(session).await.unwrap();
    assert_eq!(done.status, RunStatus::Completed);
    let line = Line { item: "cup".to_owned(), count: 0 };
    let expect = Refund { amount: 5, why: Why::Damaged, lines: vec![line] };
    assert_eq!(done.state.read::<Refund>("refund").unwrap(), expect);
    assert_eq!(done.state.get("damaged"), Some(&json!(true)));
}
