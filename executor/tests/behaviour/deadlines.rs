//! Deadlines of questions: the default answers, unless somebody was quicker.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{Gate, NodeOptions, Question, RunId, RunStatus, StateGraph};
use holdpoint_storage::{Address, QuestionFilter, Random, SignalReply};
use holdpoint_testkit::until_async;
use serde_json::json;

use crate::{
    bench::{Bench, Log, on_each_store},
    gates::{open, yes},
    nodes::logged,
};

/// A question whose deadline has passed is answered by its default.
#[tokio::test]
async fn a_deadline_answers() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let question =
            Question::new("?").deadline(Duration::from_millis(30), json!({ "approve": false }));
        let gate = Gate::new("g", question).reject_to("late");
        let graph = StateGraph::new("g")
            .add_node_with("n", NodeOptions::new().gate(gate), logged("n", &log))
            .add_node("late", logged("late", &log))
            .set_entry_point("n")
            .set_finish_point("n")
            .set_finish_point("late");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert!(bench.head(&run).await.due_at_ms().is_some());
        until_async("the timer", Duration::from_secs(5), async || bench.work().await).await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!(log.all(), ["late"]);
    })
    .await;
}

/// A gate whose rejection, which is also its default, goes to `late`; else `n` runs.
fn with_deadline(log: &Log, deadline: Duration) -> StateGraph {
    let question = Question::new("Go on?").deadline(deadline, json!({ "approve": false }));
    let gate = Gate::new("n", question).reject_to("late");
    StateGraph::new("timed")
        .add_node_with("n", NodeOptions::new().gate(gate), logged("n", log))
        .add_node("late", logged("late", log))
        .set_entry_point("n")
        .set_finish_point("n")
        .set_finish_point("late")
}

/// Waits until the question's deadline has passed, by the store's clock.
async fn past_deadline(bench: &Bench, run: &RunId) {
    let due_ms = bench.progress(run).await.open().next().unwrap().deadline_ms.unwrap();
    let is_past = async || (bench.store.now_ms().await.unwrap() > due_ms).then_some(());
    until_async("the deadline", Duration::from_secs(10), is_past).await;
}

/// An answer that was acknowledged before the deadline was noted down was passed over: by an owner
/// that came late, and by one that had looked for answers a moment before.
#[tokio::test]
async fn an_acknowledged_answer_beats_a_deadline_that_nobody_noted() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(with_deadline(&log, Duration::from_millis(50)).compile().unwrap());
        let run = bench.enqueue("timed", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, yes()).await;
        past_deadline(&bench, &run).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), ["n"]);

        let run = bench.enqueue("timed", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let look = async || bench.claim("w1").await;
        let claimed = until_async("the timer", Duration::from_secs(10), look).await;
        assert!(claimed.run.inbox.is_empty());
        bench.answer(&run, yes()).await;
        assert_eq!(bench.executor().execute(claimed).await, Outcome::Completed);
        assert_eq!(log.all(), ["n", "n"]);
    })
    .await;
}

/// IN-18: answers at the moment of the deadline: one branch runs, the one that the caller was told
/// of, and nothing of the question or its timer is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_at_the_deadline_wins_or_is_refused() {
    const ROUNDS: usize = 200;
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let deadline = Duration::from_millis(20);
        bench.add(with_deadline(&log, deadline).compile().unwrap());
        let mut ends = [0, 0];
        for _ in 0..ROUNDS {
            let before = log.all().len();
            let run = bench.enqueue("timed", json!({})).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let question = open(&bench, &run).await;
            let sender = bench.clone();
            let (to, wait) = (run.clone(), deadline.mul_f64(0.9 + 0.2 * Random.unit()));
            let sent = tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                sender.signal(&to, Address::Interrupt(question), yes()).await
            });
            let look = async || bench.work().await;
            let end = until_async("the run to go on", Duration::from_secs(10), look).await;
            assert_eq!(end, Outcome::Completed);
            let is_taken = matches!(sent.await.unwrap(), SignalReply::Delivered { .. });
            let expected = if is_taken { "n" } else { "late" };
            assert_eq!(log.all()[before..], [expected], "acknowledged: {is_taken}");
            assert_eq!(bench.count(&run, "interrupt_answered").await, 1);
            assert_eq!(bench.head(&run).await.due_at_ms(), None);
            assert_eq!(bench.store.inbox(&run).await.unwrap(), []);
            ends[usize::from(is_taken)] += 1;
        }
        assert!(ends.iter().all(|count| *count > 0), "both ways: {ends:?}");
        assert!(
            bench
                .store
                .questions(&QuestionFilter::default(), None, 10)
                .await
                .unwrap()
                .rows
                .is_empty()
        );
    })
    .await;
}
