//! Sessions: one run at a time, each from the state of the last that counts.

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    AppendReducer, NodeContext, RunStatus, SessionId, State, StateGraph, StateSchema, Update,
};
use holdpoint_storage::{Address, Enqueued, IfBusy, SignalReply};
use serde_json::json;

use crate::{
    bench::{Bench, on_each_store},
    nodes::logged,
};

fn appending(id: &str) -> holdpoint_graph::CompiledGraph {
    StateGraph::new(id)
        .with_schema(StateSchema::new().with("log", AppendReducer))
        .add_node("n", |_: NodeContext, state: State| async move {
            let name: String = state.read("name")?;
            Ok(Update::new().set("log", name))
        })
        .set_entry_point("n")
        .set_finish_point("n")
        .compile()
        .unwrap()
}

/// T6: runs of one session run one after the other, each from the state of the one before.
#[tokio::test]
async fn runs_of_a_session_follow_each_other() {
    on_each_store(async |mut bench: Bench| {
        bench.add(appending("g"));
        let first = bench.enqueue_in("s", "g", json!({ "name": "one" })).await;
        let second = bench.enqueue_in("s", "g", json!({ "name": "two" })).await;
        let held = bench.claim("w1").await.unwrap();
        assert_eq!(held.run.head.run, first);
        assert!(bench.claim("w2").await.is_none(), "the second waits its turn");
        assert_eq!(bench.executor().execute(held).await, Outcome::Completed);
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.state(&second).await.get("log"), Some(&json!(["one", "two"])));
        for run in [first, second] {
            assert_eq!(bench.count(&run, "node_completed").await, 1);
        }
    })
    .await;
}

/// T5 and T20: a session used twice: the second run's gate is its own.
#[tokio::test]
async fn a_second_run_of_a_session_has_its_own_gate() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("g")
            .add_node("a", logged("a", &log))
            .add_interrupt_node("gate", logged("gate", &log))
            .add_node("z", logged("z", &log))
            .add_edge("a", "gate")
            .add_edge("gate", "z")
            .set_entry_point("a")
            .set_finish_point("z");
        bench.add(graph.compile().unwrap());
        for round in 1..=2 {
            let run = bench.enqueue_in("s", "g", json!({})).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            bench.answer(&run, json!("yes")).await;
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            for name in ["a", "gate", "z"] {
                assert_eq!(log.count(name), round, "{name}");
            }
        }
    })
    .await;
}

/// IN-17: a new run on a session with an open question, by each rule.
#[tokio::test]
async fn a_new_run_obeys_the_session_rule() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("g")
            .add_node("a", |_: NodeContext, _: State| async { Ok(Update::new().set("a", 1)) })
            .add_interrupt_node("gate", logged("gate", &log))
            .add_edge("a", "gate")
            .set_entry_point("a")
            .set_finish_point("gate");
        bench.add(graph.compile().unwrap());
        for rule in [IfBusy::Reject, IfBusy::Interrupt, IfBusy::Rollback] {
            let session = format!("s-{rule:?}");
            let parked = bench.enqueue_in(&session, "g", json!({})).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let mut new = Bench::new_run("g", json!({ "second": true }));
            new.session = Some(SessionId::new(&session).unwrap());
            new.if_busy = rule;
            let second = new.run.clone();
            let reply = bench.put(new).await;
            if rule == IfBusy::Reject {
                let Enqueued::SessionBusy { run, question } = reply else { panic!("{reply:?}") };
                assert_eq!(run, parked);
                assert!(question.is_some());
                continue;
            }
            assert!(matches!(reply, Enqueued::Created { .. }), "{reply:?}");
            crate::faults::close(&bench).await;
            assert_eq!(bench.status(&parked).await, RunStatus::Cancelled);
            let reply = bench.signal(&parked, Address::Only, json!(1)).await;
            assert_eq!(reply, SignalReply::Final { status: RunStatus::Cancelled });
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let keeps = bench.state(&second).await.get("a").is_some();
            assert!(keeps, "the second run's own node");
            let events = bench.events(&second).await;
            let begun = match &events[0] {
                holdpoint_graph::Event::RunStarted {
                    begin: holdpoint_graph::Beginning::Entry { state, .. },
                    ..
                } => state.clone(),
                other => panic!("{other:?}"),
            };
            let remembered = begun.get("a").is_some();
            assert_eq!(remembered, rule == IfBusy::Interrupt, "{rule:?}");
        }
    })
    .await;
}
