//! Values: what comes back is what was given, and costs what it adds.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    AppendReducer, CompiledGraph, NodeContext, NodeError, NodeOptions, Question, ReasonCode,
    RetryPolicy, RunStatus, State, StateGraph, StateSchema, Update,
};
use holdpoint_testkit::Fault;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Log, on_each_store},
    crashes::die_at_commit,
    nodes::logged,
};

fn number(state: &State, key: &str) -> u64 {
    state.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// Counts to `n` of the input, and adds `bytes` to a list in each round.
pub(crate) fn counting(id: &str, bytes: usize, log: &Log) -> CompiledGraph {
    let node = log.clone();
    StateGraph::new(id)
        .with_schema(StateSchema::new().with("items", AppendReducer))
        .add_node("count", move |_: NodeContext, state: State| {
            node.add("count");
            async move {
                let at = state.read::<Option<u64>>("at")?.unwrap_or(0) + 1;
                Ok(Update::new().set("at", at).set("items", "x".repeat(bytes)))
            }
        })
        .add_conditional_edge(
            "count",
            |state| {
                if number(state, "at") < number(state, "n") {
                    "count"
                } else {
                    holdpoint_graph::END
                }
            },
            ["count", holdpoint_graph::END],
        )
        .set_entry_point("count")
        .compile()
        .unwrap()
}

/// CP-04, CP-05, CP-06: values come back digit for digit and byte for byte, through retry, park,
/// crash, sleep and a second run of the session.
#[tokio::test]
async fn values_stay_what_they_are() {
    // wide: one text that must come back as it is
    let text = r#"{"a":[],"aa":[[]],"ao":[{}],"big":130775545883395173,"float":1.0,"int":1,"k\u0000":"a\u0000b","literal":"\\u0000","max":18446744073709551615,"min":-9223372036854775808,"n":null,"o":{},"odd":9007199254740993,"small":-0.0,"tenth":0.1}"#;
    on_each_store(async |mut bench: Bench| {
        bench.config.sleep_in_place = Duration::ZERO;
        let log = bench.log();
        let node = log.clone();
        let retry = NodeOptions::new().retry(RetryPolicy::fixed(3, Duration::from_millis(5)));
        let graph = StateGraph::new("g")
            .add_node_with("a", retry, move |ctx: NodeContext, state: State| {
                let (log, at) = (node.clone(), ctx.attempt());
                async move {
                    log.add("a");
                    if at == 1 {
                        return Err(NodeError::retryable("once"));
                    }
                    let given: Value = state.read("given")?;
                    let step = ctx.step("step", || async { Ok(given) }).await?;
                    ctx.sleep("nap", Duration::from_millis(5)).await?;
                    let answer = ctx.ask("q", Question::new("?")).await?;
                    Ok(Update::new().set("step", step).set("answer", answer.value))
                }
            })
            .add_node("z", |_: NodeContext, state: State| async move {
                let all: Value = state.read("step")?;
                Ok(Update::new().set("copy", all))
            })
            .add_edge("a", "z")
            .set_entry_point("a")
            .set_finish_point("z");
        bench.add(graph.compile().unwrap());
        let value: Value = serde_json::from_str(text).unwrap();
        for _ in 0..2 {
            let run = bench.enqueue_in("s", "g", json!({ "given": value })).await;
            bench.drain().await;
            assert_eq!(bench.status(&run).await, RunStatus::Parked);
            bench.answer(&run, value.clone()).await;
            die_at_commit(&bench, 1, Fault::HangBefore).await;
            bench.drain().await;
            assert_eq!(bench.status(&run).await, RunStatus::Completed);
            let state = bench.state(&run).await;
            for key in ["given", "step", "answer", "copy"] {
                assert_eq!(serde_json::to_string(&state.get(key)).unwrap(), text, "{key}");
            }
        }
    })
    .await;
}

/// CP-07: what is not finite is refused wherever it stands, before anything is stored, also when
/// the worker dies meanwhile.
#[tokio::test]
async fn what_is_not_finite_is_never_stored() {
    on_each_store(async |mut bench: Bench| {
        let mut at = 0;
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for place in ["x", "x[1]", "x.k"] {
                at += 1;
                let log = Log::default();
                let id = format!("g{at}");
                let graph = StateGraph::new(&id)
                    .add_node("a", logged("a", &log))
                    .add_node("bad", move |_: NodeContext, _: State| async move {
                        Ok(match place {
                            "x" => Update::new().set("x", value),
                            "x[1]" => Update::new().set("x", [0.5, value]),
                            _ => Update::new()
                                .set("x", std::collections::BTreeMap::from([("k", value)])),
                        })
                    })
                    .add_edge("a", "bad")
                    .set_entry_point("a")
                    .set_finish_point("bad");
                bench.add(graph.compile().unwrap());
                let run = bench.enqueue(&id, json!({})).await;
                die_at_commit(&bench, 2, Fault::HangBefore).await;
                let outcome = bench.work().await;
                assert_eq!(outcome, Some(Outcome::Failed(ReasonCode::NodeError)));
                let progress = bench.progress(&run).await;
                let message = &progress.reason().unwrap().message;
                assert!(message.contains("E_NUMBER") && message.contains(place), "{message}");
                assert_eq!(progress.state(), &State::new().with("last", "a"));
                assert_eq!(log.count("a"), 1);
            }
        }
    })
    .await;
}

/// CP-10: a journal grows by what each step adds, and its one snapshot is no larger than the state.
#[tokio::test]
async fn a_long_run_costs_what_it_adds() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(counting("loop", 1_024, &log));
        for rounds in [50_usize, 100, 200] {
            let run = bench.enqueue("loop", json!({ "n": rounds })).await;
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            let added = rounds * 1_024;
            let part = bench.store.journal(&run, 0, 100_000).await.unwrap().unwrap();
            let journal: usize = part.records.iter().map(Vec::len).sum();
            let part = bench.store.checkpoint(&run).await.unwrap().unwrap();
            let snapshot = part.snapshot.map_or(0, |snapshot| snapshot.len());
            let a_record = 400;
            assert!(journal <= added + rounds * a_record, "{rounds}: {journal} of {added}");
            assert!(journal + snapshot <= 3 * added + rounds * a_record, "{rounds}: {snapshot}");
        }
    })
    .await;
}
