//! Readiness that tells the truth: about the way over which runs are claimed, not about another.

use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};

use holdpoint_graph::RunStatus;
use holdpoint_storage::{Clock as _, Store, SystemClock};
use holdpoint_testkit::{Fault, FaultyStore, ProxyMode, until_async};
use holdpoint_worker::{Health, HealthReport};

use crate::world::{LONG, Log, Started, World, config};

async fn until_ready(health: &Health) {
    until_async("the worker to be ready", LONG, async || health.report().is_ready.then_some(()))
        .await;
}

async fn until_unready(health: &Health) -> HealthReport {
    until_async("the worker to be unready", LONG, async || {
        let report = health.report();
        (!report.is_ready).then_some(report)
    })
    .await
}

/// Elsewhere a probe that asked over another connection said "healthy" for days.
#[tokio::test]
async fn a_dead_way_to_claims_is_told_within_two_claim_intervals() {
    let (world, proxy) = World::relayed().await;
    let direct = world.direct().await;
    let log = Log::default();
    let graph = log.quick("work", &["a"]);
    let config = config(4_000, 1);
    let poll = config.poll;
    let worker = world.start(&[&graph], config);
    until_ready(&worker.health).await;
    proxy.set_named("holdpoint:commands", ProxyMode::Hold);
    let began = SystemClock.monotonic();
    let report = until_unready(&worker.health).await;
    let took = SystemClock.monotonic().duration_since(began);
    assert!(took <= poll * 2, "{took:?}");
    let error = report.error.unwrap();
    assert!(error.starts_with("E_STORE_UNAVAILABLE: a claim"), "{error}");
    assert!(report.since_tick.unwrap() < Duration::from_secs(2), "the upkeep goes on: {error}");
    let look = async || direct.workers().await.unwrap().pop()?.trouble;
    let trouble = until_async("the list of workers to say so", LONG, look).await;
    assert!(trouble.contains("a claim"), "{trouble}");
    let run = world.enqueue_at(&direct, "work", "run").await;
    assert_eq!(direct.head(&run).await.unwrap().unwrap().status(), RunStatus::Queued);
    proxy.set(ProxyMode::Pass);
    until_ready(&worker.health).await;
    world.until(&run, RunStatus::Completed).await;
    let look = async || {
        let workers = direct.workers().await.unwrap();
        workers.iter().all(|worker| worker.trouble.is_none()).then_some(())
    };
    until_async("the list of workers to say that it is over", LONG, look).await;
    worker.drain().await;
}

/// A wake connection that died costs a poll interval, not the worker.
#[tokio::test]
async fn a_dead_wake_connection_does_not_stop_the_claims() {
    let (world, proxy) = World::relayed().await;
    let log = Log::default();
    let graph = log.quick("work", &["a"]);
    let worker = world.start(&[&graph], config(4_000, 1));
    until_ready(&worker.health).await;
    proxy.set_named("holdpoint:wake", ProxyMode::Hold);
    for run in world.enqueue_many("work", 3).await {
        let began = SystemClock.monotonic();
        world.until(&run, RunStatus::Completed).await;
        let took = SystemClock.monotonic().duration_since(began);
        assert!(took < Duration::from_secs(3), "{took:?}");
        assert!(worker.health.report().is_ready);
    }
    worker.drain().await;
}

/// A renewal that failed is no trouble any more when there is nothing left to renew.
#[tokio::test]
async fn a_failed_renewal_is_forgotten_with_its_lease() {
    let world = World::redis().await;
    let (log, starts) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    let graph = log.line("work", &["a"], move |_| {
        let is_first = starts.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if is_first {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let open = Arc::clone(&world.upkeep_store);
    let worker = world.worker(&[&graph], config(1_000, 1)).with_upkeep_store(Arc::new(move || {
        let open = Arc::clone(&open);
        Box::pin(async move {
            let plan = |name, _| if name == "renew" { Fault::Refuse } else { Fault::Pass };
            let store: Arc<dyn Store> = Arc::new(FaultyStore::new(open().await?, plan));
            Ok(store)
        })
    }));
    let worker = Started::of(worker);
    until_ready(&worker.health).await;
    let run = world.enqueue("work", "run").await;
    let report = until_unready(&worker.health).await;
    assert!(report.error.unwrap().contains("a lease renewal"));
    world.until(&run, RunStatus::Completed).await;
    until_ready(&worker.health).await;
    worker.drain().await;
}

/// A server that is made unsafe by hand gets no more claims, and is used again when it is safe.
#[tokio::test]
async fn a_server_that_becomes_unsafe_gets_no_claims() {
    let (world, _proxy) = World::relayed().await;
    let direct = world.direct().await;
    let server = world.redis.as_ref().unwrap();
    let log = Log::default();
    let graph = log.quick("work", &["a"]);
    let worker = world.start(&[&graph], config(4_000, 1));
    until_ready(&worker.health).await;
    for policy in ["allkeys-lru", "volatile-lru"] {
        server.cli(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let look = async || {
            let error = worker.health.report().error?;
            error.starts_with("E_STORE_UNSAFE: a claim").then_some(error)
        };
        let error = until_async("the claims to be refused", LONG, look).await;
        assert!(error.contains(policy) && error.contains("maxmemory-policy noeviction"), "{error}");
        let run = world.enqueue_at(&direct, "work", policy).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(direct.head(&run).await.unwrap().unwrap().status(), RunStatus::Queued);
        server.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        world.until(&run, RunStatus::Completed).await;
        until_ready(&worker.health).await;
    }
    worker.drain().await;
}
