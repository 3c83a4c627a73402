//! Long sleeps: they hold no worker, are no loss, and do not start their node before their time.

use std::{sync::Arc, time::Duration};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Effect, NodeContext, NodeError, NodeOptions, RunStatus, State, StateGraph, Update,
    limits::DELAY_MS_MAX,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::bench::{Bench, Log, on_each_store};

/// With an unsafe node that sleeps for `wait`, longer than it may in place, then has its effect.
fn sleeper(log: &Log, wait: Duration) -> StateGraph {
    let node = log.clone();
    StateGraph::new("sleep")
        .add_node_with(
            "n",
            NodeOptions::new().effect(Effect::Unsafe),
            move |ctx: NodeContext, _: State| {
                let log = node.clone();
                async move {
                    log.add("top");
                    ctx.sleep("nap", wait).await?;
                    log.add("effect");
                    Ok(Update::new().set("n", true))
                }
            },
        )
        .set_finish_point("n")
}

/// An unsafe node that sleeps was handed back on purpose: the next claim goes on with it and asks
/// nobody whether it had its effect.
#[tokio::test]
async fn an_unsafe_node_that_slept_is_not_asked_about() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.config.sleep_in_place = Duration::ZERO;
        let graph = sleeper(&log, Duration::from_millis(50)).set_entry_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("sleep", json!({})).await;
        let outcome = bench.work().await.unwrap();
        assert!(matches!(outcome, Outcome::Rescheduled { .. }), "{outcome:?}");
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!((log.count("top"), log.count("effect")), (2, 1));
        assert_eq!(bench.count(&run, "interrupt_opened").await, 0);
    })
    .await;
}

/// A run whose node sleeps beside another that works: when the worker is lost or drains, the
/// sleep is no loss, and its node does not start again before its time.
#[tokio::test]
async fn a_sleep_outlives_its_worker() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.config.sleep_in_place = Duration::ZERO;
        let (inside, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (entered, may_end) = (Arc::clone(&inside), Arc::clone(&go));
        let graph = sleeper(&log, Duration::from_secs(3_600))
            .add_router("start")
            .add_node("other", move |_: NodeContext, _: State| {
                let (entered, may_end) = (Arc::clone(&entered), Arc::clone(&may_end));
                async move {
                    entered.notify_one();
                    may_end.notified().await;
                    Ok(())
                }
            })
            .add_edge("start", "n")
            .add_edge("start", "other")
            .set_entry_point("start")
            .set_finish_point("other");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("sleep", json!({})).await;
        for is_lost in [true, false] {
            let claimed = bench.claim("w1").await.unwrap();
            let control = claimed.control.clone();
            let executor = bench.executor();
            let working = tokio::spawn(async move { executor.execute(claimed).await });
            inside.notified().await;
            holdpoint_testkit::until_async("the sleep", Duration::from_secs(10), async || {
                (bench.count(&run, "node_slept").await == 1).then_some(())
            })
            .await;
            match is_lost {
                true => {
                    working.abort();
                    let _ = working.await;
                    bench.lose("w1").await;
                }
                false => {
                    control.drain();
                    go.notify_one();
                    let outcome = working.await.unwrap();
                    assert!(matches!(outcome, Outcome::Rescheduled { .. }), "{outcome:?}");
                }
            }
        }
        assert_eq!(log.all(), ["top"]);
        assert_eq!(bench.count(&run, "interrupt_opened").await, 0);
    })
    .await;
}

/// A wait that no clock can count is as long as a delay may be, and both stores hold it.
#[tokio::test]
async fn a_wait_beyond_all_bounds_is_bounded() {
    on_each_store(async |mut bench: Bench| {
        bench.add(sleeper(&bench.log(), Duration::MAX).set_entry_point("n").compile().unwrap());
        let graph = StateGraph::new("waits")
            .add_node("n", |_: NodeContext, _: State| async {
                Err::<(), _>(NodeError::retry_after(Duration::MAX, "later"))
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        for id in ["sleep", "waits"] {
            let run = bench.enqueue(id, json!({})).await;
            let outcome = bench.work().await.unwrap();
            let Outcome::Rescheduled { until_ms } = outcome else { panic!("{outcome:?}") };
            let left_ms = until_ms - bench.store.now_ms().await.unwrap();
            assert!((0..=DELAY_MS_MAX).contains(&left_ms), "{id}: {left_ms}");
            let head = bench.head(&run).await;
            assert_eq!((head.status(), head.due_at_ms()), (RunStatus::Scheduled, Some(until_ms)));
        }
    })
    .await;
}
