//! How runs end: retries, cancels, expiry, and a store that forgot everything.

use std::time::Duration;

use holdpoint_graph::{
    NodeContext, NodeError, NodeOptions, QueueId, ReasonCode, RetryPolicy, RunStatus, State,
    StateGraph, Update,
};
use holdpoint_storage::{AppendReply, When};
use holdpoint_testkit::until_async;

use crate::world::{LONG, Log, World, config, on_all};

#[tokio::test]
async fn two_attempts_are_exactly_two() {
    on_all(async |world| {
        let log = Log::default();
        let said = log.clone();
        let options = NodeOptions::new().retry(RetryPolicy::fixed(2, Duration::from_millis(20)));
        let graph = StateGraph::new("broken")
            .add_node_with("broken", options, move |ctx: NodeContext, _: State| {
                said.say(format!("{}/{}", ctx.run(), ctx.node()));
                async { Err::<Update, _>(NodeError::retryable("it does not work")) }
            })
            .set_entry_point("broken")
            .set_finish_point("broken")
            .compile()
            .unwrap();
        let run = world.enqueue("broken", "run").await;
        let worker = world.start(&[&graph], config(5_000, 2));
        let head = world.until(&run, RunStatus::Failed).await;
        assert_eq!(head.reason(), Some(ReasonCode::NodeError));
        assert_eq!(log.count("run/broken"), 2);
        assert_eq!(head.lost_in_life, 0, "errors of nodes are no lost workers");
        worker.drain().await;
    })
    .await;
}

#[tokio::test]
async fn a_cancel_reaches_a_running_node() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.line("waits", &["waits", "never"], |ctx| async move {
            ctx.cancelled().await;
            Ok(())
        });
        let run = world.enqueue("waits", "run").await;
        let worker = world.start(&[&graph], config(2_000, 2));
        log.until("run/waits", 1).await;
        assert_eq!(world.cancel(&run).await, AppendReply::Cancelling);
        world.until(&run, RunStatus::Cancelled).await;
        assert_eq!(log.count("run/never"), 0);
        worker.drain().await;
    })
    .await;
}

/// A run that nobody may claim any more is ended all the same.
#[tokio::test]
async fn a_run_that_waited_too_long_expires() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a"]);
        world.store.pause(&QueueId::new("default").unwrap(), true).await.unwrap();
        let run = world.enqueue_with("quick", "run", |new| new.expires = Some(When::In(200))).await;
        let worker = world.start(&[&graph], config(5_000, 2));
        let head = world.until(&run, RunStatus::Failed).await;
        assert_eq!(head.reason(), Some(ReasonCode::Expired));
        assert_eq!(log.all(), Vec::<String>::new());
        worker.drain().await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_is_listed_with_its_graphs_and_runs() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", LONG);
        let run = world.enqueue("slow", "run").await;
        let worker = world.start(&[&graph], config(5_000, 3));
        log.until("run/slow", 1).await;
        let record = until_async("the worker to be listed", LONG, async || {
            let record = world.store.workers().await.unwrap().pop()?;
            (!record.runs.is_empty()).then_some(record)
        })
        .await;
        assert_eq!(record.worker, worker.id);
        assert_eq!(record.runs, [run]);
        assert_eq!(record.graphs, [(graph.id().clone(), graph.fingerprint().clone())]);
        assert_eq!((record.concurrency, record.is_draining), (3, false));
        assert!(record.since_ms > 0 && record.pid == std::process::id());
        until_async("the graph to be published", LONG, async || {
            let published = world.store.graphs().await.unwrap().pop()?;
            assert_eq!(&published.graph, graph.id());
            serde_json::from_str::<serde_json::Value>(&published.drawing).ok()
        })
        .await;
        worker.shutdown.abort();
        worker.end().await;
    })
    .await;
}

/// After `FLUSHALL` a worker registers anew and serves; nothing is invented.
#[tokio::test]
async fn a_store_that_was_flushed_is_served_again() {
    let world = World::redis().await;
    let log = Log::default();
    let graph = log.quick("quick", &["a"]);
    let worker = world.start(&[&graph], config(5_000, 2));
    let run = world.enqueue("quick", "before").await;
    world.until(&run, RunStatus::Completed).await;
    world.redis.as_ref().unwrap().cli(&["FLUSHALL"]);
    until_async("the worker to be listed again", LONG, async || {
        let workers = world.store.workers().await.ok()?;
        (workers.first()?.worker == worker.id).then_some(())
    })
    .await;
    until_async("the graph to be published again", LONG, async || {
        let graphs = world.store.graphs().await.ok()?;
        graphs.first().map(|_| ())
    })
    .await;
    let run = world.enqueue("quick", "after").await;
    world.until(&run, RunStatus::Completed).await;
    worker.drain().await;
}
