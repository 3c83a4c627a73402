//! The end of a worker: in order, in a hurry, and by itself.

use std::time::Duration;

use holdpoint_graph::RunStatus;
use holdpoint_storage::{Clock as _, SystemClock, When};
use holdpoint_testkit::until_async;
use holdpoint_worker::{Shutdown, WorkerEnd};

use crate::world::{LONG, Log, config, on_all};

/// Renewals go on while the worker drains.
#[tokio::test]
async fn a_drain_lets_a_node_of_three_leases_end_and_hands_the_run_back() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", Duration::from_secs(3));
        let run = world.enqueue("slow", "run").await;
        let first = world.start(&[&graph], config(1_000, 2));
        log.until("run/slow", 1).await;
        first.shutdown.drain();
        let second = world.start(&[&graph], config(1_000, 2));
        assert_eq!(first.end().await, WorkerEnd::Drained);
        let head = world.until(&run, RunStatus::Completed).await;
        for node in ["a", "slow", "c"] {
            assert_eq!(log.count(&format!("run/{node}.")), 1, "{:?}", log.all());
        }
        assert_eq!(log.count("run/slow"), 1);
        assert_eq!((head.claims, head.lost_in_life), (2, 0), "{head:?}");
        second.drain().await;
    })
    .await;
}

#[tokio::test]
async fn a_draining_worker_claims_nothing() {
    on_all(async |world| {
        let log = Log::default();
        let slow = log.slow("slow", Duration::from_secs(1));
        let quick = log.quick("quick", &["a"]);
        world.enqueue("slow", "run").await;
        let worker = world.start(&[&slow, &quick], config(2_000, 4));
        log.until("run/slow", 1).await;
        worker.shutdown.drain();
        until_async("the worker to be seen draining", LONG, async || {
            let workers = world.store.workers().await.unwrap();
            workers.iter().any(|record| record.is_draining).then_some(())
        })
        .await;
        let late = world.enqueue_many("quick", 5).await;
        assert_eq!(worker.end().await, WorkerEnd::Drained);
        // A claim that was under way may have brought one; that went back untouched.
        for run in &late {
            let head = world.head(run).await;
            assert_eq!((head.status(), head.seq, head.lost_in_life), (RunStatus::Queued, 0, 0));
        }
        assert_eq!(world.store.workers().await.unwrap(), [], "it said farewell");
    })
    .await;
}

#[tokio::test]
async fn an_idle_worker_drains_at_once() {
    on_all(async |world| {
        let graph = Log::default().quick("quick", &["a"]);
        let worker = world.start(&[&graph], config(10_000, 4));
        until_async("the worker to be ready", LONG, async || {
            worker.health.report().is_ready.then_some(())
        })
        .await;
        let health = worker.health.clone();
        let began = SystemClock.monotonic();
        assert_eq!(worker.drain().await, WorkerEnd::Drained);
        assert!(SystemClock.monotonic() - began < Duration::from_secs(2));
        assert!(health.report().is_draining && !health.report().is_ready);
    })
    .await;
}

/// The end of the drain, and a second signal, hand back at once; that is no fault of the run's.
#[tokio::test]
async fn runs_that_do_not_end_in_time_are_handed_back() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", LONG * 10);
        let run = world.enqueue("slow", "run").await;
        let hurry = |shutdown: &Shutdown| shutdown.abort();
        let patient = |_: &Shutdown| {};
        for (times, drain, then) in
            [(1, Duration::from_millis(300), &patient as &dyn Fn(&Shutdown)), (2, LONG * 9, &hurry)]
        {
            let mut config = config(10_000, 2);
            config.drain = drain;
            let worker = world.start(&[&graph], config);
            log.until("run/slow", times).await;
            let shutdown = worker.shutdown.clone();
            shutdown.drain();
            then(&shutdown);
            assert_eq!(worker.end().await, WorkerEnd::Drained);
            let head = world.head(&run).await;
            assert_eq!(head.status(), RunStatus::Queued);
            assert_eq!((head.lost_in_row, head.lost_in_life), (0, 0));
        }
        assert_eq!(log.count("run/a"), 1);
    })
    .await;
}

/// A node that never yields takes no notice of anything; its lease is handed back all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_that_takes_no_notice_is_handed_back_for_it() {
    on_all(async |world| {
        let log = Log::default();
        let end = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stop = std::sync::Arc::clone(&end);
        let graph = log.line("spin", &["spin"], move |_| {
            let stop = std::sync::Arc::clone(&stop);
            async move {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                Ok(())
            }
        });
        let run = world.enqueue("spin", "run").await;
        let worker = world.start(&[&graph], config(10_000, 2));
        log.until("run/spin", 1).await;
        worker.shutdown.abort();
        assert_eq!(worker.end().await, WorkerEnd::Aborted { left: 1 });
        assert_eq!(world.head(&run).await.status(), RunStatus::Queued);
        end.store(true, std::sync::atomic::Ordering::Relaxed);
    })
    .await;
}

#[tokio::test]
async fn a_worker_ends_by_itself_when_nothing_is_left_to_do() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a", "b"]);
        let runs = world.enqueue_many("quick", 20).await;
        let soon = world.enqueue_with("quick", "soon", |new| new.start = When::In(700)).await;
        let far = world.enqueue_with("quick", "far", |new| new.start = When::In(3_600_000)).await;
        let other = world.enqueue("unserved", "other").await;
        let mut config = config(5_000, 3);
        config.exit_when_idle = true;
        assert_eq!(world.start(&[&graph], config).end().await, WorkerEnd::Idle);
        world.until_all(&runs, RunStatus::Completed).await;
        assert_eq!(world.head(&soon).await.status(), RunStatus::Completed);
        assert_eq!(world.head(&far).await.status(), RunStatus::Scheduled);
        assert_eq!(world.head(&other).await.status(), RunStatus::Queued);
    })
    .await;
}
