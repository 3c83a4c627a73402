//! What time and newer programs do to a run that waits: versions, staleness, deadlines.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    AppendReducer, Effect, Event, InterruptKind, NodeContext, NodeOptions, OnStale, Question,
    ReasonCode, RunId, RunPayload, RunStatus, State, StateGraph, StateSchema, Update,
};
use holdpoint_producer::{Producer, SignalOptions};
use holdpoint_storage::{Address, Chain, SignalReply, When};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, on_each_store},
    nodes::logged,
};

/// CP-12: an open run keeps the structure that it began with; the session's next begins on the new
/// one, from the last state.
#[tokio::test]
async fn an_open_run_keeps_its_version_and_the_next_takes_the_new_one() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let first = StateGraph::new("g")
            .with_schema(StateSchema::new().with("path", AppendReducer))
            .add_interrupt_node("gate", |_: NodeContext, _: State| async {
                Ok(Update::new().set("path", "v1"))
            })
            .set_entry_point("gate")
            .set_finish_point("gate");
        bench.add(first.compile().unwrap());
        let open = bench.enqueue_in("s", "g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let second = StateGraph::new("g")
            .with_schema(StateSchema::new().with("path", AppendReducer))
            .add_node("only", |_: NodeContext, _: State| async {
                Ok(Update::new().set("path", "v2"))
            })
            .set_entry_point("only")
            .set_finish_point("only");
        bench.add(second.compile().unwrap());
        let next = bench.enqueue_in("s", "g", json!({})).await;
        assert_eq!(bench.work().await, None, "the next waits its turn");
        bench.answer(&open, json!(true)).await;
        bench.drain().await;
        assert_eq!(bench.state(&open).await.get("path"), Some(&json!(["v1"])));
        assert_eq!(bench.state(&next).await.get("path"), Some(&json!(["v1", "v2"])));
        let pins = [bench.head(&open).await.fingerprint, bench.head(&next).await.fingerprint];
        assert_ne!(pins[0], pins[1]);
        assert!(log.all().is_empty());
    })
    .await;
}

/// CP-18: what the next version wrote is left as it is for a program that can read it, and is
/// offered again a little later; nothing is counted against the run.
#[tokio::test]
async fn what_a_newer_program_wrote_is_left_alone() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(crate::nodes::line("line", &["a"], &log).compile().unwrap());
        let mut new = Bench::new_run("line", json!({}));
        new.payload = br#"{"version":2,"initial":{},"news":true}"#.to_vec();
        let envelope = new.run.clone();
        bench.put(new).await;
        let record = bench.enqueue("line", json!({})).await;
        let mut chain = Chain::start(bench.store.namespace(), &record);
        let mut bytes = chain.encode(1, 0, &Event::RunParked { wake_at_ms: None });
        bytes[0] = 2;
        let claimed = bench.claim("w0").await.unwrap();
        let claimed = match claimed.run.head.run == record {
            true => claimed,
            false => {
                let other = bench.claim("w0").await.unwrap();
                assert!(bench.store.release(&claimed.run.lease).await.unwrap());
                other
            }
        };
        let request = holdpoint_storage::CommitRequest {
            lease: claimed.run.lease.clone(),
            request: holdpoint_storage::Random.request_id(),
            from: 0,
            previous: claimed.run.head.hash.clone(),
            records: vec![bytes.clone()],
            hash: chain.hash(),
            snapshot: None,
            consumed: vec![],
            opened: vec![],
            closed: vec![],
            is_progress: true,
            pin: None,
            lease_ms: 10_000,
            disposition: holdpoint_storage::Disposition::Reschedule { until_ms: 0 },
        };
        bench.store.commit(&request).await.unwrap();
        for _ in 0..2 {
            let outcome = bench.work().await.unwrap();
            assert!(matches!(outcome, Outcome::Rescheduled { .. }), "{outcome:?}");
        }
        assert_eq!(bench.work().await, None, "offered again later, not at once");
        assert_eq!(bench.head(&envelope).await.seq, 0);
        let part = bench.store.journal(&record, 0, 9).await.unwrap().unwrap();
        assert_eq!(part.records, [bytes]);
        for run in [&envelope, &record] {
            let head = bench.head(run).await;
            assert_eq!((head.status(), head.lost_in_row), (RunStatus::Scheduled, 0));
        }
        assert!(log.all().is_empty());
    })
    .await;
}

/// CP-19: a run that ends by its deadline while it is parked says so, and takes no answer.
#[tokio::test]
async fn a_parked_run_past_its_deadline_takes_no_answer() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("g")
            .add_interrupt_node("gate", logged("gate", &log))
            .set_entry_point("gate")
            .set_finish_point("gate");
        bench.add(graph.compile().unwrap());
        let mut new = Bench::new_run("g", json!({}));
        new.deadline = Some(When::In(150));
        let run = new.run.clone();
        bench.put(new).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        crate::faults::close(&bench).await;
        assert_eq!(bench.head(&run).await.reason(), Some(ReasonCode::Expired));
        assert_eq!(bench.count(&run, "run_failed").await, 1);
        let reply = bench.signal(&run, Address::Only, json!(1)).await;
        assert_eq!(reply, SignalReply::Final { status: RunStatus::Failed });
        assert!(log.all().is_empty());
    })
    .await;
}

/// A graph whose unsafe node is behind a gate.
fn gated(log: &crate::bench::Log) -> holdpoint_graph::CompiledGraph {
    let gate = holdpoint_graph::Gate::new("gate", Question::new("Go on?"));
    StateGraph::new("g")
        .add_node_with("n", NodeOptions::new().effect(Effect::Unsafe).gate(gate), logged("n", log))
        .set_entry_point("n")
        .set_finish_point("n")
        .compile()
        .unwrap()
}

/// A run that is parked at its gate, and whose plan is stale.
async fn stale(bench: &Bench, on_stale: OnStale) -> RunId {
    let mut payload = RunPayload::new(State::new());
    (payload.stale_after_ms, payload.on_stale) = (Some(20), on_stale);
    let mut new = Bench::new_run("g", json!({}));
    new.payload = payload.encode();
    let run = new.run.clone();
    bench.put(new).await;
    assert_eq!(bench.work().await, Some(Outcome::Parked));
    let stale_ms = bench.store.now_ms().await.unwrap() + 30;
    holdpoint_testkit::until_async("the plan is stale", Duration::from_secs(5), async || {
        (bench.store.now_ms().await.unwrap() > stale_ms).then_some(())
    })
    .await;
    run
}

/// I7: an approval that comes after the plan went stale starts nothing: the run does what its
/// producer chose.
#[tokio::test]
async fn a_stale_run_starts_nothing_by_itself() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(gated(&log));
        for (on_stale, end) in [
            (OnStale::Ask, Outcome::Parked),
            (OnStale::Cancel, Outcome::Cancelled),
            (OnStale::Resume, Outcome::Completed),
        ] {
            let before = log.count("n");
            let run = stale(&bench, on_stale).await;
            bench.answer(&run, json!({ "approve": true })).await;
            assert_eq!(bench.work().await, Some(end), "{on_stale:?}");
            let ran = usize::from(end == Outcome::Completed);
            assert_eq!(log.count("n") - before, ran, "{on_stale:?}");
        }
    })
    .await;
}

/// A person who is asked about a stale plan lets the run go on or cancels it, once; whoever comes
/// later is told what was decided.
#[tokio::test]
async fn a_person_decides_about_a_stale_plan_once() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(gated(&log));
        let producer = Producer::new(bench.store.clone());
        for (word, end, ran) in
            [("resume", Outcome::Completed, 1), ("cancel", Outcome::Cancelled, 0)]
        {
            let before = log.count("n");
            let run = stale(&bench, OnStale::Ask).await;
            let to_it = |answer: Value| SignalOptions::run(run.as_str()).answer(answer).by("ann");
            producer.signal(&to_it(json!({ "approve": true }))).await.unwrap();
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let progress = bench.progress(&run).await;
            let open: Vec<_> = progress.open().collect();
            assert_eq!((open.len(), open[0].kind), (1, InterruptKind::Stale));
            assert_eq!(open[0].allowed, ["resume", "cancel"]);
            let bad = producer.signal(&to_it(json!({ "approve": true }))).await.unwrap_err();
            assert_eq!((bad.code().as_str(), bad.field()), ("E_SCHEMA", "answer"));
            let question = open[0].interrupt.as_str();
            producer.signal(&to_it(json!(word)).interrupt(question)).await.unwrap();
            let late = to_it(json!("cancel")).interrupt(question).by("bob");
            let said = producer.signal(&late).await.unwrap_err();
            assert_eq!(said.code().as_str(), "E_DECIDED");
            assert!(said.to_string().contains("ann"), "{said}");
            assert_eq!(bench.work().await, Some(end), "{word}");
            assert_eq!(log.count("n") - before, ran, "{word}");
            let said = producer.signal(&late).await.unwrap_err();
            assert_eq!((said.code().as_str(), said.code().http_status()), ("E_RUN_FINAL", 409));
            assert!(said.to_string().contains("ann"), "{said}");
        }
    })
    .await;
}
