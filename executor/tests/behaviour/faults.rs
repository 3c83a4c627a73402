//! What operators and callers do to a run: cancel, redrive, deadlines, damaged records.

use std::{sync::Arc, time::Duration};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    CompiledGraph, Event, NodeContext, ReasonCode, RunId, RunStatus, State, StateGraph,
};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Chain, Enqueued, Random, TickRequest, When,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    bench::{Bench, Log, on_each_store},
    nodes::{line, logged},
};

/// Appends an event to a run that nobody has.
pub(crate) async fn append(
    bench: &Bench,
    run: &RunId,
    event: &Event,
    kind: AppendKind,
) -> AppendReply {
    let head = bench.head(run).await;
    let mut chain = Chain::at(bench.store.namespace(), run, head.seq, &head.hash).unwrap();
    let now_ms = bench.store.now_ms().await.unwrap();
    let record = chain.encode(now_ms, 0, event);
    let request = AppendRequest {
        run: run.clone(),
        request: Random.request_id(),
        from: head.seq,
        previous: head.hash,
        record,
        hash: chain.hash(),
    };
    bench.store.append(&request, &kind).await.unwrap()
}

/// Sends a failed run on.
pub(crate) async fn redrive(bench: &Bench, run: &RunId) {
    let event = Event::Redriven { by: "ann".to_owned(), max_steps: None };
    let reply = append(bench, run, &event, AppendKind::Redrive).await;
    assert!(matches!(reply, AppendReply::Done { status: RunStatus::Queued, .. }), "{reply:?}");
}

pub(crate) async fn cancel(bench: &Bench, run: &RunId) -> AppendReply {
    let event = Event::RunCancelled { by: "ann".to_owned() };
    append(bench, run, &event, AppendKind::Cancel { rollback: false }).await
}

/// a → b, where `a` tells when it was entered and ends when it may.
fn held(log: &Log, inside: &Arc<Notify>, go: &Arc<Notify>) -> CompiledGraph {
    let (node, entered, may_end) = (log.clone(), Arc::clone(inside), Arc::clone(go));
    StateGraph::new("g")
        .add_node("a", move |_: NodeContext, _: State| {
            node.add("a");
            let (entered, may_end) = (Arc::clone(&entered), Arc::clone(&may_end));
            async move {
                entered.notify_one();
                may_end.notified().await;
                Ok(holdpoint_graph::Update::new().set("a", 1))
            }
        })
        .add_node("b", logged("b", log))
        .add_edge("a", "b")
        .set_entry_point("a")
        .set_finish_point("b")
        .compile()
        .unwrap()
}

/// T17: a cancel while a node runs: its result is committed, the next node never starts.
#[tokio::test]
async fn a_cancelled_run_starts_no_further_node() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let (inside, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        bench.add(held(&log, &inside, &go));
        let run = bench.enqueue("g", json!({})).await;
        let work = bench.clone();
        let working = tokio::spawn(async move { work.work().await });
        inside.notified().await;
        assert_eq!(cancel(&bench, &run).await, AppendReply::Cancelling);
        go.notify_one();
        assert_eq!(working.await.unwrap(), Some(Outcome::Cancelled));
        assert_eq!(log.all(), ["a"]);
        assert_eq!(bench.status(&run).await, RunStatus::Cancelled);
        assert_eq!(bench.state(&run).await.get("a"), Some(&json!(1)));
        assert_eq!(bench.count(&run, "run_cancelled").await, 1);
        assert!(matches!(cancel(&bench, &run).await, AppendReply::Done { .. }));
    })
    .await;
}

/// A node that obeys is told of the cancel through its lease's renewal.
#[tokio::test]
async fn a_node_hears_of_the_cancel() {
    on_each_store(async |mut bench: Bench| {
        let inside = Arc::new(Notify::new());
        let entered = inside.clone();
        let graph = StateGraph::new("g")
            .add_node("a", move |ctx: NodeContext, _: State| {
                let entered = entered.clone();
                async move {
                    entered.notify_one();
                    ctx.cancelled().await;
                    assert!(ctx.is_cancelled());
                    Ok(())
                }
            })
            .set_entry_point("a")
            .set_finish_point("a");
        bench.add(graph.compile().unwrap());
        bench.enqueue("g", json!({})).await;
        let claimed = bench.claim("w1").await.unwrap();
        let control = claimed.control.clone();
        let executor = bench.executor();
        let working = tokio::spawn(async move { executor.execute(claimed).await });
        inside.notified().await;
        control.cancel();
        assert_eq!(working.await.unwrap(), Outcome::Cancelled);
    })
    .await;
}

/// Drain: the node ends and is committed, the next does not start, the run is claimable at once.
#[tokio::test]
async fn a_drained_run_is_handed_back_after_its_node() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let (inside, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        bench.add(held(&log, &inside, &go));
        let run = bench.enqueue("g", json!({})).await;
        let claimed = bench.claim("w1").await.unwrap();
        let control = claimed.control.clone();
        let executor = bench.executor();
        let working = tokio::spawn(async move { executor.execute(claimed).await });
        inside.notified().await;
        control.drain();
        go.notify_one();
        assert_eq!(working.await.unwrap(), Outcome::Released);
        assert_eq!(bench.status(&run).await, RunStatus::Queued);
        assert_eq!(bench.head(&run).await.lost_in_life, 0);
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), ["a", "b"]);
    })
    .await;
}

/// T18, and C43: a payload that is no envelope fails at once, with its bytes kept.
#[tokio::test]
async fn a_broken_payload_fails_after_one_claim() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        for bytes in [&b"\xff\xfe"[..], b"{}", b"{\"version\":7}", b"{\"version\":1,\"odd\":1}"] {
            let mut new = Bench::new_run("line", json!({}));
            new.payload = bytes.to_vec();
            let run = new.run.clone();
            assert!(matches!(bench.put(new).await, Enqueued::Created { .. }));
            assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::Undecodable)));
            let head = bench.head(&run).await;
            assert_eq!((head.claims, head.reason()), (1, Some(ReasonCode::Undecodable)));
            assert_eq!(bench.store.payload(&run).await.unwrap().unwrap(), bytes);
        }
        assert!(log.all().is_empty());
    })
    .await;
}

/// A run for a graph that nobody serves is claimed by nobody.
#[tokio::test]
async fn an_unserved_graph_is_left_alone() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let unserved = bench.enqueue("elsewhere", json!({})).await;
        let served = bench.enqueue("line", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.work().await, None);
        let head = bench.head(&unserved).await;
        assert_eq!((head.status(), head.claims), (RunStatus::Queued, 0));
        assert_eq!(bench.status(&served).await, RunStatus::Completed);
    })
    .await;
}

/// I7: a run past its time to start, or to end, starts no node.
#[tokio::test]
async fn an_expired_run_starts_no_node() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let mut late = Bench::new_run("line", json!({}));
        late.expires = Some(When::In(-1));
        let mut over = Bench::new_run("line", json!({}));
        over.deadline = Some(When::In(-1));
        for new in [late, over] {
            let run = new.run.clone();
            bench.put(new).await;
            assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::Expired)));
            assert_eq!(bench.count(&run, "run_failed").await, 1);
        }
        // The same without a worker that serves its graph: a tick ends it.
        let mut unserved = Bench::new_run("elsewhere", json!({}));
        unserved.deadline = Some(When::In(-1));
        let run = unserved.run.clone();
        bench.put(unserved).await;
        close(&bench).await;
        assert_eq!(bench.head(&run).await.reason(), Some(ReasonCode::Expired));
        assert!(log.all().is_empty());
    })
    .await;
}

/// Ends what a tick finds to end.
pub(crate) async fn close(bench: &Bench) {
    let request = TickRequest {
        worker: holdpoint_graph::WorkerId::new("closer").unwrap(),
        nonce: Random.nonce(),
        lease_ms: 10_000,
        grace_ms: 1_000,
        loss_delays_ms: vec![0],
        hold_after_ms: 2_000,
        doubt: false,
        max: 100,
    };
    let clock: holdpoint_storage::SharedClock = Arc::new(holdpoint_storage::SystemClock);
    let ticked =
        holdpoint_testkit::until_async("a tick closes", Duration::from_secs(5), async || {
            let ticked = bench.store.tick(&request).await.unwrap();
            (!ticked.closing.is_empty()).then_some(ticked)
        })
        .await;
    for run in ticked.closing {
        let control = holdpoint_executor::Control::new(clock.monotonic() + Duration::from_secs(8));
        let time = holdpoint_executor::StoreTime::new(clock.clone(), ticked.now_ms);
        let claimed = holdpoint_executor::Claimed { run, control, time: Arc::new(time) };
        bench.executor().close(claimed).await;
    }
}

/// C37, CP-14: exactly N distinct tasks over the run's life; a redrive with a higher limit goes on.
#[tokio::test]
async fn the_step_limit_counts_distinct_tasks_over_the_whole_life() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("loop")
            .add_node("count", move |_: NodeContext, state: State| {
                node.add("count");
                async move {
                    let n = state.read::<Option<u64>>("n")?.unwrap_or(0);
                    Ok(holdpoint_graph::Update::new().set("n", n + 1))
                }
            })
            .add_conditional_edge(
                "count",
                |state| match state.get("n").and_then(serde_json::Value::as_u64) {
                    Some(n) if n >= 5 => holdpoint_graph::END,
                    _ => "count",
                },
                ["count", holdpoint_graph::END],
            )
            .set_entry_point("count");
        bench.add(graph.compile().unwrap());
        for (limit, end) in [(5, RunStatus::Completed), (4, RunStatus::Failed)] {
            bench.config.max_steps = limit;
            let before = log.count("count");
            let run = bench.enqueue("loop", json!({})).await;
            bench.work().await.unwrap();
            assert_eq!(bench.status(&run).await, end);
            assert_eq!(log.count("count") - before, usize::try_from(limit).unwrap());
            if end == RunStatus::Failed {
                assert_eq!(bench.head(&run).await.reason(), Some(ReasonCode::StepLimit));
                let event = Event::Redriven { by: "ann".to_owned(), max_steps: Some(9) };
                append(&bench, &run, &event, AppendKind::Redrive).await;
                assert_eq!(bench.work().await, Some(Outcome::Completed));
                assert_eq!(log.count("count") - before, 5);
            }
        }
    })
    .await;
}
