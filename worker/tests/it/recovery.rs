//! Runs whose worker is gone, and runs whose worker is not: the first are taken over, the second
//! are left alone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use holdpoint_graph::{GraphId, QueueId, RunStatus, SessionId};
use holdpoint_storage::{Clock, Lane, Random, Store, SystemClock, When};
use holdpoint_testkit::{Fault, FaultyStore, until_async};

use crate::world::{LONG, Log, Started, World, config, on_all};

/// Work that takes longer than a lease was given to a second worker while the first was fine.
#[tokio::test]
async fn a_node_of_many_leases_is_claimed_once() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", Duration::from_secs(5));
        let run = world.enqueue("slow", "run").await;
        let workers = [(); 4].map(|()| world.start(&[&graph], config(1_000, 1)));
        let head = world.until(&run, RunStatus::Completed).await;
        assert_eq!(head.claims, 1);
        assert_eq!(log.count("run/slow"), 1);
        for worker in workers {
            worker.drain().await;
        }
    })
    .await;
}

/// Recovery read a list, the run ended meanwhile, and recovery put it back.
/// No renewal comes through here, so that every run races its own recovery.
#[tokio::test]
async fn recovery_never_touches_what_has_ended() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.line("work", &["a"], |_| async {
            let ms = 250.0 + 250.0 * Random.unit();
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
            Ok(())
        });
        let runs = world.enqueue_many("work", 30).await;
        let workers = [(); 3].map(|()| {
            let mut config = config(500, 20);
            config.loss_delays = vec![Duration::ZERO];
            config.max_crashes = 10;
            let open = Arc::clone(&world.upkeep_store);
            Started::of(world.worker(&[&graph], config).with_upkeep_store(Arc::new(move || {
                let open = Arc::clone(&open);
                Box::pin(async move {
                    let plan = |name, _| if name == "renew" { Fault::Refuse } else { Fault::Pass };
                    let store: Arc<dyn Store> = Arc::new(FaultyStore::new(open().await?, plan));
                    Ok(store)
                })
            })))
        });
        let mut ended = std::collections::BTreeMap::new();
        until_async("all runs to end", LONG, async || {
            for run in &runs {
                let head = world.head(run).await;
                let state = (head.status(), head.claims, head.seq);
                let first = ended.get(run).cloned().unwrap_or(state);
                assert!(!first.0.is_terminal() || first == state, "{run}: {first:?} {state:?}");
                ended.insert(run.clone(), state);
            }
            ended.values().all(|(status, ..)| status.is_terminal()).then_some(())
        })
        .await;
        let claims: u64 = ended.values().map(|(_, claims, _)| *claims).sum();
        assert!(claims > 30, "some runs were taken over: {claims}");
        for worker in workers {
            worker.drain().await;
        }
        for (run, state) in &ended {
            let head = world.head(run).await;
            assert_eq!(*state, (head.status(), head.claims, head.seq));
        }
    })
    .await;
}

/// The lease's entry is gone, by eviction, a restore or a hand: whoever looks for lost leases by
/// that entry alone never finds the run.
#[tokio::test]
async fn a_lease_without_its_deadline_is_found() {
    let world = World::redis().await;
    let server = world.redis.as_ref().unwrap();
    let (log, starts) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&starts);
    let graph = log.line("work", &["a"], move |_| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            if is_first {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    });
    let run = world.enqueue("work", "run").await;
    let first = world.start(&[&graph], config(1_000, 1));
    log.until("run/a", 1).await;
    let keys = server.cli(&["KEYS", "*:lse"]);
    assert_eq!(server.cli(&["ZREM", &keys, "run"]), "1");
    let is_back = || (!server.cli(&["ZSCORE", &keys, "run"]).is_empty()).then_some(());
    holdpoint_testkit::until("a renewal to put it back", LONG, is_back);
    assert_eq!(world.head(&run).await.claims, 1, "its worker lives");
    first.kill().await;
    server.cli(&["ZREM", &keys, "run"]);
    let second = world.start(&[&graph], config(1_000, 1));
    world.until(&run, RunStatus::Completed).await;
    assert_eq!(log.count("run/a"), 2);
    second.drain().await;
}

/// The holder dies again and again; nothing of it stays in the way of the session's next run.
#[tokio::test]
async fn a_session_goes_on_when_its_workers_die() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.line("work", &["a"], |_| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(())
        });
        let mut runs = Vec::new();
        for n in 0..6 {
            let with_session = |new: &mut holdpoint_storage::NewRun| {
                new.session = Some(SessionId::new("line").unwrap());
            };
            runs.push(world.enqueue_with("work", &format!("r{n}"), with_session).await);
        }
        world.cancel(&runs[3]).await;
        for n in 0..3 {
            let worker = world.start(&[&graph], config(500, 4));
            log.until(&format!("r{n}/a"), 1).await;
            worker.kill().await;
        }
        let last = world.start(&[&graph], config(500, 4));
        for (n, run) in runs.iter().enumerate() {
            let status = if n == 3 { RunStatus::Cancelled } else { RunStatus::Completed };
            world.until(run, status).await;
        }
        let ends: Vec<_> = log.all().into_iter().filter(|said| said.ends_with('.')).collect();
        assert_eq!(ends, ["r0/a.", "r1/a.", "r2/a.", "r4/a.", "r5/a."], "one after the other");
        last.drain().await;
    })
    .await;
}

/// A panic is a node's error: its slot is free again, and nobody else notices.
#[tokio::test]
async fn panics_cost_no_slot() {
    on_all(async |world| {
        let (log, busy) = (Log::default(), Arc::new(AtomicUsize::new(0)));
        let panics = log.line("panics", &["a"], |_| async { panic!("on purpose") });
        let most = Arc::new(AtomicUsize::new(0));
        let (now, seen) = (Arc::clone(&busy), Arc::clone(&most));
        let works = log.line("works", &["a"], move |_| {
            let (now, seen) = (Arc::clone(&now), Arc::clone(&seen));
            async move {
                seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        });
        let (mut bad, mut good) = (Vec::new(), Vec::new());
        for n in 0..110 {
            match n % 11 {
                0 => bad.push(world.enqueue("panics", &format!("p{n}")).await),
                _ => good.push(world.enqueue("works", &format!("g{n}")).await),
            }
        }
        let mut config = config(10_000, 4);
        config.max_crashes = 1;
        let worker = world.start(&[&panics, &works], config);
        world.until_all(&good, RunStatus::Completed).await;
        // They are tried again as often as any node that fails.
        for run in &bad {
            let head = world.head(run).await;
            assert_ne!(head.status(), RunStatus::Completed, "{head:?}");
        }
        most.store(0, Ordering::SeqCst);
        let more: Vec<_> = futures_of(world, "works", 40).await;
        world.until_all(&more, RunStatus::Completed).await;
        assert_eq!(most.load(Ordering::SeqCst), 4, "all slots are there");
        worker.drain().await;
    })
    .await;
}

async fn futures_of(world: &World, graph: &str, count: usize) -> Vec<holdpoint_graph::RunId> {
    let mut runs = Vec::new();
    for n in 0..count {
        runs.push(world.enqueue(graph, &format!("more{n}")).await);
    }
    runs
}

/// A host's clock that is wrong by so much.
#[derive(Debug)]
struct Wrong(i64);

impl Clock for Wrong {
    fn wall_ms(&self) -> i64 {
        self.wall_us() / 1_000
    }
    fn wall_us(&self) -> i64 {
        SystemClock.wall_us() + self.0 * 1_000_000
    }
    fn monotonic(&self) -> Instant {
        SystemClock.monotonic()
    }
}

/// Fast clocks stole live work, slow ones delayed everything: here only the store's clock counts.
#[tokio::test]
async fn wrong_clocks_of_workers_change_nothing() {
    on_all(async |world| {
        let log = Log::default();
        let graph = log.slow("slow", Duration::from_secs(3));
        let run = world.enqueue("slow", "run").await;
        let right = world.start(&[&graph], config(1_000, 1));
        log.until("run/slow", 1).await;
        let wrong = [300, -300].map(|seconds| {
            let worker = world.worker(&[&graph], config(1_000, 1));
            Started::of(worker.with_clock(Arc::new(Wrong(seconds))))
        });
        let late = world.enqueue_with("slow", "late", |new| new.start = When::In(2_000)).await;
        let head = world.until(&run, RunStatus::Completed).await;
        assert_eq!(head.claims, 1, "nobody took it from a live worker");
        let head = world.until(&late, RunStatus::Completed).await;
        let waited_ms = head.started_at_ms.unwrap() - head.created_at_ms;
        assert!((2_000..6_000).contains(&waited_ms), "started after {waited_ms} ms");
        for worker in [right].into_iter().chain(wrong) {
            worker.drain().await;
        }
    })
    .await;
}

/// A blocking wait on a shared connection stalls every other call of the process.
#[tokio::test]
async fn a_wait_for_work_delays_no_other_call() {
    on_all(async |world| {
        let lane = Lane {
            queue: QueueId::new("q").unwrap(),
            graph: GraphId::new("g").unwrap(),
            fingerprint: None,
        };
        let store = Arc::clone(&world.store);
        let waiting = tokio::spawn(async move {
            loop {
                store.wait(std::slice::from_ref(&lane), Duration::from_secs(5)).await;
            }
        });
        let mut times = Vec::new();
        for n in 0..200 {
            let began = SystemClock.monotonic();
            world.store.now_ms().await.unwrap();
            if n % 4 == 0 {
                world.enqueue("work", &format!("r{n}")).await;
            }
            times.push(SystemClock.monotonic().duration_since(began));
        }
        waiting.abort();
        times.sort_unstable();
        let p99 = times[197];
        assert!(p99 < Duration::from_millis(100), "{p99:?}");
    })
    .await;
}
