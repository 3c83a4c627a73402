//! Who gets what, in which order, and how soon.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use holdpoint_executor::{Claimed, Outcome};
use holdpoint_graph::{QueueId, RunStatus};
use holdpoint_storage::{Clock as _, SystemClock, When};
use holdpoint_testkit::until_async;
use holdpoint_worker::Execute;

use crate::world::{LONG, Log, Started, World, config, on_all};

#[tokio::test]
async fn higher_priorities_go_first_and_equal_ones_in_order() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a"]);
        for (run, priority) in [("low", 0), ("first", 4), ("second", 4), ("high", 9)] {
            world.enqueue_with("quick", run, |new| new.priority = priority).await;
        }
        let mut config = config(5_000, 1);
        config.exit_when_idle = true;
        world.start(&[&graph], config).end().await;
        let started: Vec<String> =
            log.all().into_iter().filter(|said| !said.ends_with('.')).collect();
        assert_eq!(started, ["high/a", "first/a", "second/a", "low/a"]);
    })
    .await;
}

#[tokio::test]
async fn a_graph_that_nobody_serves_waits_untouched() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("served", &["a"]);
        let waits = world.enqueue("unserved", "waits").await;
        let runs = world.enqueue_many("served", 10).await;
        let worker = world.start(&[&graph], config(5_000, 2));
        world.until_all(&runs, RunStatus::Completed).await;
        let head = world.head(&waits).await;
        assert_eq!((head.status(), head.claims, head.seq), (RunStatus::Queued, 0, 0));
        let late = log.quick("unserved", &["a"]);
        let other = world.start(&[&late], config(5_000, 2));
        world.until(&waits, RunStatus::Completed).await;
        worker.drain().await;
        other.drain().await;
    })
    .await;
}

/// Idle workers are woken, whatever the number of their lanes; the poll is only the safety net.
#[tokio::test]
async fn an_idle_worker_is_woken_for_each_of_its_lanes() {
    on_all(async |world| {
        let log = Log::default();
        let names: Vec<String> = (0..64).map(|n| format!("g{n}")).collect();
        let graphs: Vec<_> = names.iter().map(|name| log.quick(name, &["a"])).collect();
        let mut patient = config(120_000, 4);
        patient.poll = LONG * 10;
        let worker = world.start(&graphs.iter().collect::<Vec<_>>(), patient);
        until_async("the worker to be ready", LONG, async || {
            worker.health.report().is_ready.then_some(())
        })
        .await;
        for name in ["g0", "g63", "g31", "g1"] {
            let began = SystemClock.monotonic();
            let run = world.enqueue(name, &format!("run-{name}")).await;
            world.until(&run, RunStatus::Completed).await;
            assert!(SystemClock.monotonic() - began < Duration::from_secs(10));
        }
        worker.drain().await;
    })
    .await;
}

#[tokio::test]
async fn only_the_queues_asked_for_are_served() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a"]);
        let queue = |name: &str| QueueId::new(name).unwrap();
        let mine = world.enqueue_with("quick", "mine", |new| new.queue = queue("mine")).await;
        let theirs = world.enqueue_with("quick", "theirs", |new| new.queue = queue("theirs")).await;
        let mut config = config(5_000, 1);
        config.queues = vec![queue("mine"), queue("empty")];
        config.exit_when_idle = true;
        world.start(&[&graph], config).end().await;
        assert_eq!(world.head(&mine).await.status(), RunStatus::Completed);
        assert_eq!(world.head(&theirs).await.status(), RunStatus::Queued);
    })
    .await;
}

#[tokio::test]
async fn a_timer_fires_once_not_early_and_soon() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a"]);
        let worker = world.start(&[&graph], config(5_000, 2));
        let run = world.enqueue_with("quick", "later", |new| new.start = When::In(1_500)).await;
        assert_eq!(world.head(&run).await.status(), RunStatus::Scheduled);
        let head = world.until(&run, RunStatus::Completed).await;
        let after_ms = head.started_at_ms.unwrap() - head.created_at_ms;
        assert!((1_500..4_000).contains(&after_ms), "started after {after_ms} ms");
        assert_eq!(log.count("later/a"), 1);
        worker.drain().await;
    })
    .await;
}

/// A layer that counts what passes, and refuses the first call.
#[derive(Clone, Default)]
struct Counting {
    calls: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Counted(Counting, Execute);

impl tower::Layer<Execute> for Counting {
    type Service = Counted;
    fn layer(&self, inner: Execute) -> Counted {
        Counted(self.clone(), inner)
    }
}

impl tower::Service<Claimed> for Counted {
    type Response = Outcome;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = futures_util::future::BoxFuture<'static, Result<Outcome, Self::Error>>;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        self.1.poll_ready(cx)
    }

    fn call(&mut self, claimed: Claimed) -> Self::Future {
        if self.0.calls.fetch_add(1, Ordering::Relaxed) == 0 {
            return Box::pin(async { Err("not now".into()) });
        }
        self.1.call(claimed)
    }
}

#[tokio::test]
async fn a_layer_sees_each_claim_and_a_run_it_refuses_is_handed_back() {
    let world = World::sqlite().await;
    let log = Log::default();
    let graph = log.quick("quick", &["a", "b"]);
    let layer = Counting::default();
    let worker = world.worker(&[&graph], config(5_000, 2)).with_layer(layer.clone());
    let worker = Started::of(worker);
    let run = world.enqueue("quick", "run").await;
    let head = world.until(&run, RunStatus::Completed).await;
    assert_eq!((head.claims, head.lost_in_life), (2, 0));
    assert_eq!(layer.calls.load(Ordering::Relaxed), 2);
    worker.drain().await;
}
