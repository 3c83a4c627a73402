//! Retries that meet something else: a pause, a cancel.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Event, NodeContext, NodeError, NodeOptions, Question, RetryPolicy, RunStatus, State, StateGraph,
};
use holdpoint_storage::{AppendKind, AppendReply};
use serde_json::json;

use crate::{
    bench::{Bench, on_each_store},
    failures::{flaky, retries},
    faults::append,
    nodes::logged,
};

/// PF-13: a retry that comes to a pause is parked, not failed; pauses spend no attempts.
#[tokio::test]
async fn a_retry_that_asks_is_parked() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .add_node_with("first", retries(3), flaky("first", 1, &log))
            .add_node_with("asks", retries(3), move |ctx: NodeContext, _: State| {
                let log = node.clone();
                async move {
                    log.add(format!("asks {}", ctx.attempt()));
                    if ctx.attempt() < 2 {
                        return Err(NodeError::retryable("not yet"));
                    }
                    ctx.ask("q", Question::new("?")).await?;
                    Ok(())
                }
            })
            .add_node("c", logged("c", &log))
            .add_edge("first", "asks")
            .add_edge("asks", "c")
            .set_entry_point("first")
            .set_finish_point("c");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Parked);
        bench.answer(&run, json!(1)).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let seen = ["first", "first", "asks 1", "asks 2", "asks 2", "c"];
        assert_eq!(log.all(), seen);
        assert_eq!(bench.count(&run, "node_failed").await, 2);
    })
    .await;
}

/// PF-06: runs that fail again and again are cancelled together; nothing of them runs any more.
#[tokio::test]
async fn cancelled_retries_never_run_again() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let retry = NodeOptions::new().retry(RetryPolicy::fixed(100, Duration::from_millis(300)));
        let graph = StateGraph::new("g")
            .add_node_with("n", retry, flaky("n", usize::MAX, &log))
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let mut runs = Vec::new();
        for _ in 0..100 {
            runs.push(bench.enqueue("g", json!({})).await);
        }
        for _ in &runs {
            bench.work().await;
        }
        for run in &runs {
            let event = Event::RunCancelled { by: "ann".to_owned() };
            let reply = append(&bench, run, &event, AppendKind::Cancel { rollback: false }).await;
            assert!(matches!(reply, AppendReply::Done { .. }), "{reply:?}");
        }
        let attempts = log.count("n");
        let due_ms = bench.store.now_ms().await.unwrap() + 350;
        holdpoint_testkit::until_async("all timers' time", Duration::from_secs(5), async || {
            assert_eq!(bench.work().await, None);
            (bench.store.now_ms().await.unwrap() > due_ms).then_some(())
        })
        .await;
        assert_eq!(log.count("n"), attempts);
        let stats = bench.store.stats().await.unwrap();
        assert!(stats.counts.contains(&(RunStatus::Cancelled, 100)), "{:?}", stats.counts);
    })
    .await;
}
