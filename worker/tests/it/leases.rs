//! Claims and leases: each node once while its worker lives, and again when it does not.

use std::{
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use holdpoint_graph::{ReasonCode, RunStatus};
use holdpoint_storage::{Clock as _, Store};
use holdpoint_testkit::{Fault, FaultyStore, until_async};
use holdpoint_worker::Worker;
use tokio::sync::Semaphore;

use crate::{
    deaf::Deaf,
    world::{LONG, Log, Started, World, config, on_all},
};

/// A queue that fetched ahead of its free slots let the leases of what it had fetched run out.
#[tokio::test]
async fn more_work_than_slots_loses_no_lease() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", Duration::from_millis(1_000));
        let runs = world.enqueue_many("slow", 10).await;
        let workers = [(); 2].map(|()| world.start(&[&graph], config(2_000, 1)));
        let running = Arc::new(AtomicUsize::new(0));
        let done = until_async("all runs to complete", LONG, async || {
            let stats = world.store.stats().await.unwrap();
            let count = |status| stats.counts.iter().find(|(s, _)| *s == status).unwrap().1;
            running.fetch_max(count(RunStatus::Running) as usize, Ordering::Relaxed);
            (count(RunStatus::Completed) == 10).then_some(())
        });
        done.await;
        assert!(running.load(Ordering::Relaxed) <= 2, "never more than there are slots");
        for run in &runs {
            assert_eq!(world.head(run).await.claims, 1);
            for node in ["a", "slow", "c"] {
                assert_eq!(log.count(&format!("{run}/{node}")), 1, "{:?}", log.all());
            }
        }
        for worker in workers {
            worker.drain().await;
        }
    })
    .await;
}

/// A store that was slow with the claim alone made its run wait for the end of a lease that nobody
/// could use: the worker's time under it was over when the reply came.
#[tokio::test]
async fn a_claim_that_is_answered_too_late_is_made_again() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("quick", &["a"]);
        let run = world.enqueue("quick", "r").await;
        // Longer than the worker may act under the lease, and shorter than the lease.
        let late = Duration::from_millis(1_800);
        let slow: Arc<dyn Store> =
            Arc::new(FaultyStore::new(Arc::clone(&world.store), move |name, number| {
                match (name, number) {
                    ("claim", 1) => Fault::DelayReply(late),
                    _ => Fault::Pass,
                }
            }));
        let worker = Worker::new(slow, vec![graph], config(2_000, 4)).unwrap();
        let worker = Started::of(worker.with_upkeep_store(Arc::clone(&world.upkeep_store)));
        let head = world.until(&run, RunStatus::Completed).await;
        assert_eq!((head.claims, head.lost_in_life), (1, 0), "{head:?}");
        assert_eq!(log.count("r/a"), 1);
        worker.drain().await;
    })
    .await;
}

/// What was finished stays finished when the worker is killed.
#[tokio::test]
async fn a_killed_worker_costs_only_what_it_was_in() {
    on_all(async |world| {
        let (log, open) = (Log::default(), Arc::new(Semaphore::new(7)));
        let gate = Arc::clone(&open);
        let graph = log.line("work", &["a", "b"], move |ctx| {
            let gate = Arc::clone(&gate);
            async move {
                if ctx.node() == "b" {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(())
            }
        });
        let runs = world.enqueue_many("work", 10).await;
        let first = world.start(&[&graph], config(1_000, 10));
        until_async("7 to complete", LONG, async || {
            let mut done = 0;
            for run in &runs {
                done += usize::from(world.head(run).await.status() == RunStatus::Completed);
            }
            (done == 7).then_some(())
        })
        .await;
        first.kill().await;
        open.add_permits(100);
        let second = world.start(&[&graph], config(1_000, 10));
        world.until_all(&runs, RunStatus::Completed).await;
        let times = |node: &str| {
            let counts = runs.iter().map(|run| log.count(&format!("{run}/{node}")));
            let mut counts: Vec<usize> = counts.collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(times("a"), [1; 10], "committed nodes are not executed again");
        assert_eq!(times("b"), [1, 1, 1, 1, 1, 1, 1, 2, 2, 2], "only 3 were lost");
        second.drain().await;
    })
    .await;
}

#[tokio::test]
async fn an_undecodable_payload_fails_its_run_and_not_the_worker() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.quick("work", &["a"]);
        let bad =
            world.enqueue_with("work", "bad", |new| new.payload = b"{\"version\":1,".to_vec());
        let bad = bad.await;
        let good = world.enqueue("work", "good").await;
        let worker = world.start(&[&graph], config(2_000, 2));
        let head = world.until(&bad, RunStatus::Failed).await;
        assert_eq!((head.reason(), head.claims), (Some(ReasonCode::Undecodable), 1));
        world.until(&good, RunStatus::Completed).await;
        assert_eq!(world.store.payload(&bad).await.unwrap().unwrap(), b"{\"version\":1,");
        worker.drain().await;
    })
    .await;
}

/// A store that stalls, or restarts, for less than a lease costs nothing.
#[tokio::test]
async fn a_stall_shorter_than_a_lease_ends_no_node() {
    let world = World::redis().await;
    let server = world.redis.as_ref().unwrap();
    let log = Log::default();
    let graph = log.slow("slow", Duration::from_secs(4));
    let runs = world.enqueue_many("slow", 3).await;
    let worker = world.start(&[&graph], config(6_000, 3));
    for run in &runs {
        log.until(&format!("{run}/slow"), 1).await;
    }
    for stall_ms in [300, 800] {
        server.pause();
        tokio::time::sleep(Duration::from_millis(stall_ms)).await;
        server.resume();
        until_async("the store to answer", LONG, async || world.store.now_ms().await.ok()).await;
    }
    server.restart();
    world.until_all(&runs, RunStatus::Completed).await;
    for run in &runs {
        assert_eq!(world.head(run).await.claims, 1);
        assert_eq!(log.count(&format!("{run}/slow")), 1, "{:?}", log.all());
    }
    worker.drain().await;
}

/// A node that never yields cannot starve the renewals: they have a thread of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_spins_keeps_its_lease() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.line("spin", &["spin"], |_| async {
            let clock = holdpoint_storage::SystemClock;
            let end = clock.monotonic() + Duration::from_secs(3);
            while clock.monotonic() < end {
                std::thread::yield_now();
            }
            Ok(())
        });
        let run = world.enqueue("spin", "run").await;
        let spinning = world.worker(&[&graph], config(1_000, 1));
        let shutdown = holdpoint_worker::Shutdown::new();
        let thread = std::thread::spawn({
            let shutdown = shutdown.clone();
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(Box::pin(spinning.run(shutdown)))
            }
        });
        log.until("run/spin", 1).await;
        let idle = world.start(&[&graph], config(1_000, 1));
        let head = world.until(&run, RunStatus::Completed).await;
        assert_eq!(head.claims, 1);
        assert_eq!(log.count("run/spin"), 1);
        idle.drain().await;
        shutdown.drain();
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    })
    .await;
}

/// A worker that cannot renew stops acting before anybody else may take its run.
#[tokio::test]
async fn a_worker_that_cannot_renew_gives_its_run_up() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", Duration::from_secs(4));
        let run = world.enqueue("slow", "run").await;
        let zombie = {
            let open = Arc::clone(&world.upkeep_store);
            world.worker(&[&graph], config(1_000, 1)).with_upkeep_store(Arc::new(move || {
                let open = Arc::clone(&open);
                Box::pin(async move {
                    let deaf: Arc<dyn Store> = Arc::new(Deaf(open().await?));
                    Ok(deaf)
                })
            }))
        };
        let zombie = Started::of(zombie);
        log.until("run/slow", 1).await;
        let sound = world.start(&[&graph], config(1_000, 1));
        // Whoever gets it: the zombie may take it again, and loses it again.
        log.until("run/slow", 2).await;
        zombie.drain().await;
        let head = world.until(&run, RunStatus::Completed).await;
        assert!(head.claims >= 2, "{head:?}");
        assert_eq!(log.count("run/a"), 1, "what was committed stands");
        assert_eq!(log.count("run/slow."), 1, "no zombie finished its node: {:?}", log.all());
        sound.drain().await;
    })
    .await;
}

/// The end of workers without progress is counted where it cannot be forgotten: in the claim.
#[tokio::test]
async fn a_run_that_loses_every_worker_fails() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", LONG);
        let run = world.enqueue("slow", "run").await;
        let mut config = config(2_000, 1);
        config.loss_delays = vec![Duration::ZERO];
        let worker = world.start(&[&graph], config);
        for crash in 1..=3 {
            log.until("run/slow", crash).await;
            let lost = world.store.lost(&worker.id, "signal 9", &[0]).await.unwrap();
            assert_eq!(lost, std::slice::from_ref(&run));
        }
        let head = world.until(&run, RunStatus::Failed).await;
        assert_eq!(head.reason(), Some(ReasonCode::CrashLoop));
        assert_eq!(log.count("run/slow"), 3);
        assert_eq!(log.count("run/slow."), 0, "fenced owners drop their nodes");
        worker.drain().await;
    })
    .await;
}
