//! Budgets: a run that has used one up asks a person, counts exactly over crashes, and goes on.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Budget, Event, Interrupt, InterruptKind, NodeContext, ReasonCode, Resource, RunId, RunPayload,
    RunStatus, State, StateGraph, Update,
};
use holdpoint_producer::{Producer, SignalOptions};
use holdpoint_testkit::Fault;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Log, on_each_store},
    crashes::die_at_commit,
    nodes::line,
};

const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];

const fn steps(steps: u64) -> Budget {
    Budget { steps: Some(steps), time_ms: None }
}

async fn enqueue(bench: &Bench, graph: &str, budget: Budget) -> RunId {
    let mut new = Bench::new_run(graph, json!({}));
    new.payload = RunPayload { budget, ..RunPayload::new(State::new()) }.encode();
    let run = new.run.clone();
    bench.put(new).await;
    run
}

async fn asked(bench: &Bench, run: &RunId) -> Interrupt {
    let open: Vec<Interrupt> = bench.progress(run).await.open().cloned().collect();
    let [one] = open.as_slice() else { panic!("one question was to be open: {open:?}") };
    assert_eq!(one.kind, InterruptKind::Budget);
    one.clone()
}

/// The code and the field that an answer is refused with; none when it is taken.
async fn answer(bench: &Bench, run: &RunId, answer: Value) -> Option<(&'static str, String)> {
    let options = SignalOptions::run(run.as_str()).answer(answer).by("ann");
    let said = Producer::new(bench.store.clone()).signal(&options).await;
    said.err().map(|error| (error.code().as_str(), error.field().to_owned()))
}

fn refused(code: &'static str, field: &str) -> Option<(&'static str, String)> {
    Some((code, field.to_owned()))
}

#[tokio::test]
async fn a_budget_of_steps_asks_at_its_number_and_goes_on() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &NODES, &log).compile().unwrap());
        let run = enqueue(&bench, "line", steps(2)).await;
        let more = |by: Value| json!({ "raise_by": by });
        assert_eq!(
            answer(&bench, &run, more(json!(9))).await,
            refused("E_NO_QUESTION", "interrupt")
        );
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert_eq!(log.all(), ["a", "b"]);
        let open = asked(&bench, &run).await;
        let args = json!({ "budget": "steps", "limit": 2, "used": 2 });
        assert_eq!(open.args.clone().unwrap().into_json(), args);
        assert!(open.question.contains("budget of 2 steps"), "{}", open.question);
        assert_eq!(open.allowed, ["raise_by", "fail"]);
        for bad in [json!(0), json!(-1), json!(1_000_001), json!("2"), Value::Null] {
            assert_eq!(
                answer(&bench, &run, more(bad)).await,
                refused("E_SCHEMA", "answer/raise_by")
            );
        }
        for bad in [json!({ "approve": true }), json!("retry"), json!(2)] {
            assert_eq!(answer(&bench, &run, bad).await, refused("E_SCHEMA", "answer"));
        }
        assert_eq!(answer(&bench, &run, more(json!(2))).await, None);
        assert_eq!(answer(&bench, &run, more(json!(3))).await, refused("E_DECIDED", "interrupt"));
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert_eq!(log.all(), ["a", "b", "c", "d"]);
        assert_eq!(asked(&bench, &run).await.args.unwrap().get("limit"), Some(&json!(4)));
        assert_eq!(answer(&bench, &run, more(json!(5))).await, None);
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), NODES);
        let progress = bench.progress(&run).await;
        assert_eq!((progress.used(Resource::Steps), progress.budget().steps), (5, Some(9)));
        assert_eq!(answer(&bench, &run, more(json!(1))).await, refused("E_RUN_FINAL", "run"));
    })
    .await;
}

/// A run that ends with its budget asks nothing, and one with a limit as small fails by that.
#[tokio::test]
async fn a_budget_asks_only_when_something_is_left_to_do() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &NODES, &log).compile().unwrap());
        let whole = enqueue(&bench, "line", steps(5)).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.count(&whole, "interrupt_opened").await, 0);
        bench.config.max_steps = 3;
        enqueue(&bench, "line", steps(3)).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::StepLimit)));
        bench.config.budget = steps(1);
        let by_worker = bench.enqueue("line", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked), "the worker's budget");
        asked(&bench, &by_worker).await;
    })
    .await;
}

#[tokio::test]
async fn a_person_may_end_the_run_and_a_redrive_asks_again() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &NODES, &log).compile().unwrap());
        let run = enqueue(&bench, "line", steps(1)).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let first = asked(&bench, &run).await.interrupt;
        assert_eq!(answer(&bench, &run, json!("fail")).await, None);
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::BudgetExceeded)));
        assert_eq!(bench.head(&run).await.reason(), Some(ReasonCode::BudgetExceeded));
        let message = bench.progress(&run).await.reason().unwrap().message.clone();
        assert!(message.contains("budget of steps") && message.contains("ann"), "{message}");
        let producer = Producer::new(bench.store.clone());
        producer.redrive(&run, None, "bob").await.unwrap();
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert_ne!(asked(&bench, &run).await.interrupt, first);
        assert_eq!(answer(&bench, &run, json!({ "raise_by": 9 })).await, None);
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), NODES);

        let cancelled = enqueue(&bench, "line", steps(1)).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        producer.cancel(&cancelled, "bob").await.unwrap();
        assert_eq!(bench.status(&cancelled).await, RunStatus::Cancelled);
        assert_eq!(answer(&bench, &cancelled, json!("fail")).await, refused("E_RUN_FINAL", "run"));
    })
    .await;
}

/// With the worker killed before or after any commit, on the way to the question and behind its
/// answer: it is asked once, at the same number, and nothing is counted twice.
#[tokio::test]
async fn a_budget_is_exact_over_crashes() {
    on_each_store(async |mut bench: Bench| {
        for fault in [Fault::HangBefore, Fault::HangAfter] {
            for number in 1..=4_u64 {
                let id = format!("line-{fault:?}-{number}");
                bench.add(line(&id, &NODES, &Log::default()).compile().unwrap());
                let run = enqueue(&bench, &id, steps(3)).await;
                die_at_commit(&bench, number, fault).await;
                bench.drain().await;
                let open = asked(&bench, &run).await;
                assert_eq!(open.args.unwrap().get("used"), Some(&json!(3)), "{id}");
                assert_eq!(answer(&bench, &run, json!({ "raise_by": 2 })).await, None);
                die_at_commit(&bench, number, fault).await;
                bench.drain().await;
                assert_eq!(bench.status(&run).await, RunStatus::Completed, "{id}");
                let mut counts = Vec::new();
                for event in ["node_completed", "interrupt_opened", "interrupt_answered"] {
                    counts.push(bench.count(&run, event).await);
                }
                assert_eq!(counts, [5, 1, 1], "{id}");
                assert_eq!(bench.progress(&run).await.used(Resource::Steps), 5, "{id}");
            }
        }
    })
    .await;
}

/// The new run has the budget of its source, and counts from its own beginning.
#[tokio::test]
async fn a_replay_has_a_budget_of_its_own() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &NODES, &log).compile().unwrap());
        let run = enqueue(&bench, "line", steps(2)).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let last = bench.head(&run).await.seq - 1;
        let producer = Producer::new(bench.store.clone());
        let replay = producer.replay(&run, last).await.unwrap().run;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert_eq!(log.all(), ["a", "b", "c", "d"]);
        assert_eq!(answer(&bench, &replay, json!({ "raise_by": 1 })).await, None);
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        asked(&bench, &run).await;
    })
    .await;
}

/// Nodes that take a few ms each.
fn slow(id: &str) -> StateGraph {
    let work = async |_: NodeContext, _: State| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(Update::new())
    };
    StateGraph::new(id)
        .add_node("a", work)
        .add_node("b", work)
        .add_node("c", work)
        .add_edge("a", "b")
        .add_edge("b", "c")
        .set_entry_point("a")
        .set_finish_point("c")
}

fn counted_ms(events: &[Event]) -> u64 {
    let ms = events.iter().map(|event| if let Event::TimeUsed { ms } = event { *ms } else { 0 });
    ms.sum()
}

#[tokio::test]
async fn a_budget_of_time_counts_what_a_worker_had_the_run_and_no_waiting() {
    on_each_store(async |mut bench: Bench| {
        bench.add(slow("slow").compile().unwrap());
        let run = enqueue(&bench, "slow", Budget { steps: None, time_ms: Some(1) }).await;
        let began_ms = bench.store.now_ms().await.unwrap();
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let open = asked(&bench, &run).await;
        assert_eq!(open.key.as_deref(), Some("time"));
        assert_eq!(open.args.unwrap().get("limit"), Some(&json!(1)));
        let parked_ms = bench.store.now_ms().await.unwrap();
        holdpoint_testkit::until_async("time to pass", Duration::from_secs(10), async || {
            (bench.store.now_ms().await.unwrap() > parked_ms + 100).then_some(())
        })
        .await;
        // An hour more, from what was used by then.
        assert_eq!(answer(&bench, &run, json!({ "raise_by": 3_600 })).await, None);
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        let all_ms = u64::try_from(bench.store.now_ms().await.unwrap() - began_ms).unwrap();
        let used_ms = bench.progress(&run).await.used(Resource::Time);
        assert_eq!(used_ms, counted_ms(&bench.events(&run).await));
        assert!(used_ms >= 15, "three nodes of 5 ms each took {used_ms} ms");
        assert!(used_ms + 100 <= all_ms, "{used_ms} of {all_ms} ms with 100 of waiting");
    })
    .await;
}

/// A crash gives no time back: what the lost worker did not count is counted when it is lost.
#[tokio::test]
async fn the_time_of_a_lost_worker_counts_once() {
    on_each_store(async |mut bench: Bench| {
        for fault in [Fault::HangBefore, Fault::HangAfter] {
            for number in 1..=3_u64 {
                let id = format!("slow-{fault:?}-{number}");
                bench.add(slow(&id).compile().unwrap());
                let hour = Budget { steps: None, time_ms: Some(3_600_000) };
                let run = enqueue(&bench, &id, hour).await;
                die_at_commit(&bench, number, fault).await;
                bench.drain().await;
                assert_eq!(bench.status(&run).await, RunStatus::Completed, "{id}");
                let events = bench.events(&run).await;
                let used_ms = bench.progress(&run).await.used(Resource::Time);
                let Some(lost_at) = events.iter().position(|e| e.type_name() == "worker_lost")
                else {
                    assert_eq!(used_ms, counted_ms(&events), "it had ended before: {id}");
                    continue;
                };
                let Event::WorkerLost { claimed_at_ms, lost_at_ms, .. } = &events[lost_at] else {
                    panic!("it is one");
                };
                let had_ms = u64::try_from(lost_at_ms - claimed_at_ms).unwrap();
                let before_ms = counted_ms(&events[..lost_at]);
                let expect = had_ms.max(before_ms) + counted_ms(&events[lost_at..]);
                assert_eq!(used_ms, expect, "{id}");
            }
        }
    })
    .await;
}
