//! Effects on the world outside, counted by a service: what is unknown is never repeated silently.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Effect, InterruptKind, NodeContext, NodeError, NodeOptions, RetryPolicy, RunStatus, State,
    StateGraph,
};
use holdpoint_testkit::{Fault, FaultyStore};
use serde_json::json;

use crate::bench::{Bench, on_each_store};

/// The service outside: how often it was called with each key, and what goes wrong with the first
/// call of a test.
#[derive(Clone, Default)]
struct Service(Arc<Mutex<BTreeMap<String, usize>>>);

/// What becomes of the first call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Works,
    Hangs,
    /// The service did its work, and the caller gets an error.
    LosesReply,
    /// The same as a panic of the caller.
    Panics,
    /// The service says that it did nothing.
    IsBusy,
}

impl Service {
    async fn call(&self, key: String, first: First) -> Result<(), NodeError> {
        if first == First::IsBusy {
            return Err(NodeError::retry_after(Duration::from_millis(1), "busy"));
        }
        *self.0.lock().unwrap().entry(key).or_default() += 1;
        match first {
            First::Works | First::IsBusy => Ok(()),
            First::Hangs => std::future::pending().await,
            First::LosesReply => Err(NodeError::retryable("connection reset")),
            First::Panics => panic!("connection reset"),
        }
    }

    fn calls(&self) -> Vec<usize> {
        self.0.lock().unwrap().values().copied().collect()
    }
}

/// One node of the class, or one step of it, that calls the service; the first call goes wrong.
fn graph(service: &Service, effect: Effect, is_step: bool, first: First) -> StateGraph {
    let service = service.clone();
    let tried = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let retry = RetryPolicy::fixed(3, Duration::from_millis(1));
    let options = NodeOptions::new().retry(retry).timeout(Duration::from_secs(20));
    let options = if is_step { options } else { options.effect(effect) };
    StateGraph::new("g")
        .add_node_with("n", options, move |ctx: NodeContext, _: State| {
            let was_tried = tried.swap(true, std::sync::atomic::Ordering::SeqCst);
            let first = if was_tried { First::Works } else { first };
            let service = service.clone();
            async move {
                let call = service.call(ctx.idempotency_key(), first);
                if is_step {
                    return ctx.step_with("call", effect, || call).await;
                }
                call.await
            }
        })
        .set_entry_point("n")
        .set_finish_point("n")
}

/// The class is safe to repeat or the run asks; then the answer `skip` ends it without a call more.
async fn check(bench: &Bench, run: &holdpoint_graph::RunId, effect: Effect, service: &Service) {
    bench.drain().await;
    if effect == Effect::Unsafe && bench.status(run).await == RunStatus::Parked {
        let progress = bench.progress(run).await;
        assert_eq!(progress.open().next().unwrap().kind, InterruptKind::Uncertain);
        bench.answer(run, json!("skip")).await;
        bench.drain().await;
    }
    assert_eq!(bench.status(run).await, RunStatus::Completed);
    let calls = service.calls();
    assert!(calls.len() <= 1, "one task has one key");
    if effect == Effect::Unsafe {
        assert!(calls.iter().all(|calls| *calls == 1), "{calls:?}");
    }
}

const CLASSES: [Effect; 3] = [Effect::Pure, Effect::Idempotent, Effect::Unsafe];

/// I5: the worker is killed at each commit of the run, before and after it, and inside the call.
#[tokio::test]
async fn an_unsafe_call_is_made_once_wherever_its_worker_dies() {
    on_each_store(async |mut bench: Bench| {
        for (effect, is_step) in CLASSES.into_iter().flat_map(|e| [(e, false), (e, true)]) {
            for (at, fault) in (1..=3).flat_map(|n| [(n, Fault::HangBefore), (n, Fault::HangAfter)])
            {
                let service = Service::default();
                bench.add(graph(&service, effect, is_step, First::Works).compile().unwrap());
                let run = bench.enqueue("g", json!({})).await;
                crate::crashes::die_at_commit(&bench, at, fault).await;
                check(&bench, &run, effect, &service).await;
            }
            let service = Service::default();
            bench.add(graph(&service, effect, is_step, First::Hangs).compile().unwrap());
            let run = bench.enqueue("g", json!({})).await;
            let work = bench.clone();
            let working = tokio::spawn(async move { work.work().await });
            holdpoint_testkit::until_async("the call", Duration::from_secs(10), async || {
                (service.calls() == [1]).then_some(())
            })
            .await;
            working.abort();
            let _ = working.await;
            bench.lose("w1").await;
            check(&bench, &run, effect, &service).await;
        }
    })
    .await;
}

/// I5: an error after the call leaves its outcome as unknown as a crash does, unless the node says
/// that nothing happened: with retries left, an unsafe call is asked about and not repeated.
#[tokio::test]
async fn an_unsafe_call_whose_reply_is_lost_is_asked_about() {
    on_each_store(async |mut bench: Bench| {
        for (effect, is_step) in CLASSES.into_iter().flat_map(|e| [(e, false), (e, true)]) {
            for first in [First::LosesReply, First::Panics, First::IsBusy] {
                let service = Service::default();
                bench.add(graph(&service, effect, is_step, first).compile().unwrap());
                let run = bench.enqueue("g", json!({})).await;
                let outcome = bench.work().await.unwrap();
                let is_asked = effect == Effect::Unsafe && first != First::IsBusy;
                assert_eq!(outcome == Outcome::Parked, is_asked, "{effect:?} {first:?}");
                check(&bench, &run, effect, &service).await;
                let expected = 1 + usize::from(effect != Effect::Unsafe && first != First::IsBusy);
                assert_eq!(service.calls(), [expected], "{effect:?} {first:?}");
            }
        }
        // A time-out is no answer either, and each doubt is a question of its own.
        let service = Service::default();
        let graph = graph(&service, Effect::Unsafe, true, First::Hangs);
        bench.add(graph.compile().unwrap());
        bench.config.node_timeout = Duration::from_millis(20);
        let options = NodeOptions::new().effect(Effect::Unsafe);
        let slow = StateGraph::new("slow")
            .add_node_with("n", options, |_: NodeContext, _: State| async {
                std::future::pending::<()>().await;
                Ok(())
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(slow.compile().unwrap());
        let run = bench.enqueue("slow", json!({})).await;
        for _ in 0..3 {
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let progress = bench.progress(&run).await;
            let open = progress.open().next().unwrap();
            assert!(open.question.contains("took longer"), "{}", open.question);
            bench.answer(&run, json!("retry")).await;
        }
        assert_eq!(bench.count(&run, "interrupt_answered").await, 2);
    })
    .await;
}

/// CP-16: a commit that fails for good: the worker gives the run up and names the commit; the next
/// owner repeats an idempotent node at most once, under the same key, and asks about an unsafe one.
#[tokio::test]
async fn a_commit_that_fails_for_good_gives_the_run_up() {
    on_each_store(async |mut bench: Bench| {
        let config = bench.config;
        for effect in CLASSES {
            let service = Service::default();
            bench.add(graph(&service, effect, false, First::Works).compile().unwrap());
            let run = bench.enqueue("g", json!({})).await;
            let number = if effect == Effect::Unsafe { 2 } else { 1 };
            let faulty = FaultyStore::new(bench.store.clone(), move |name, at| {
                if name == "commit" && at >= number { Fault::Refuse } else { Fault::Pass }
            });
            let mut deaf = bench.over(Arc::new(faulty));
            deaf.config.lease = Duration::from_millis(300);
            deaf.config.margin = Duration::from_millis(60);
            assert_eq!(deaf.work().await, Some(Outcome::GivenUp), "{effect:?}");
            assert_eq!(bench.status(&run).await, RunStatus::Running);
            bench.config = config;
            bench.lose("w1").await;
            check(&bench, &run, effect, &service).await;
            assert_eq!(service.calls(), [if effect == Effect::Unsafe { 1 } else { 2 }]);
        }
    })
    .await;
}
