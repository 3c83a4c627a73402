//! Workers that die, alone or again and again, and stores that are away just when their runs are to
//! be taken over.

use std::time::Duration;

use holdpoint::{Clock as _, Random, RunRequest, RunStatus, SystemClock};
use holdpoint_testkit::{Process, until_async};
use tokio::time::sleep;

use crate::world::{LONG, World, lines};

/// The last attempts of a run that are told to have ended by a lost lease.
async fn lost_attempts(world: &World, run: &holdpoint::RunId) -> usize {
    let view = world.producer.get(run).await.unwrap();
    view.attempts.iter().filter(|attempt| attempt.end.to_string().starts_with("lost")).count()
}

/// The only worker is killed with its machine, and started again a moment or some leases later.
#[tokio::test]
async fn a_lone_worker_that_comes_back_takes_its_runs_up() {
    for pause in [Duration::from_secs(1), Duration::from_secs(4)] {
        let world = World::new().await;
        let mut worker = world.worker(&["--lease", "1s"]).await;
        let run = world.enqueue("slow", serde_json::json!({ "n": 2 })).await;
        world.until_started(&run, "slow").await;
        worker.kill_9();
        sleep(pause).await;
        let began = SystemClock.monotonic();
        let _again = world.start(&["--lease", "1s"]);
        world.until_completed(&run).await;
        let took = SystemClock.monotonic().duration_since(began);
        // Its own 2 s; the end of the lease with its grace; and one lease more, for which nothing
        // is taken from anybody after a time without ticks.
        assert!(took < Duration::from_secs(7), "after {pause:?}: {took:?}");
        let ledger = world.ledger();
        assert_eq!(ledger.count(run.as_str(), "a", "done"), 1, "what was committed stays");
        assert_eq!(ledger.count(run.as_str(), "c", "done"), 1);
        assert_eq!(lost_attempts(&world, &run).await, 1);
    }
}

/// A recovery that failed once was never tried again.
#[tokio::test]
async fn runs_are_taken_over_although_the_store_was_away_just_then() {
    let world = World::new().await;
    let mut first = world.worker(&["--lease", "1s"]).await;
    let mut runs = Vec::new();
    for _ in 0..16 {
        runs.push(world.enqueue("slow", serde_json::json!({ "n": 2 })).await);
    }
    for run in &runs {
        world.until_started(run, "slow").await;
    }
    first.kill_9();
    let second = world.start(&["--lease", "1s"]);
    until_async("the second worker to tick", LONG, async || {
        let workers = world.producer.workers().await.ok()?;
        workers.iter().any(|worker| worker.pid == second.pid()).then_some(())
    })
    .await;
    world.server.kill_9();
    sleep(Duration::from_secs(3)).await;
    world.server.restart();
    let began = SystemClock.monotonic();
    for run in &runs {
        world.until_completed(run).await;
    }
    let took = SystemClock.monotonic().duration_since(began);
    assert!(took < Duration::from_secs(15), "{took:?}");
}

/// Popping and marking were two steps once: whoever died in between lost the run.
#[tokio::test]
async fn workers_that_are_killed_all_the_time_lose_nothing() {
    let world = World::new().await;
    let requests: Vec<_> = (0..300).map(|_| RunRequest::new("lin").allow_unknown()).collect();
    let receipts = world.producer.enqueue_batch(&requests, false).await.unwrap();
    let start = || world.start(&["--lease", "1s", "--max-crashes", "10"]);
    let mut workers: Vec<Process> = (0..3).map(|_| start()).collect();
    for _ in 0..20 {
        sleep(Duration::from_millis(200)).await;
        let victim = (Random.unit() * 2.99) as usize;
        workers[victim].kill_9();
        workers[victim] = start();
    }
    for receipt in receipts {
        let run = receipt.unwrap().run;
        world.until_completed(&run).await;
        assert!(world.ledger().count(run.as_str(), "c", "done") >= 1);
    }
    let stats = world.producer.stats().await.unwrap();
    let count = |status: RunStatus| stats.counts.get(status.as_str()).copied().unwrap_or(0);
    assert_eq!(count(RunStatus::Completed), 300, "{stats:?}");
    assert_eq!(count(RunStatus::Running) + count(RunStatus::Queued), 0, "{stats:?}");
}

/// A timer is the store's: no worker's memory holds it.
#[tokio::test]
async fn a_delayed_run_survives_a_restart_of_the_store() {
    let world = World::new().await;
    let _worker = world.worker(&[]).await;
    let delay = Duration::from_secs(3);
    let receipt = world.producer.enqueue(&RunRequest::new("lin").delay(delay)).await.unwrap();
    sleep(delay / 2).await;
    world.server.restart();
    world.until_completed(&receipt.run).await;
    let view = world.producer.get(&receipt.run).await.unwrap();
    let waited_ms = view.started_at.unwrap().0 - view.created_at.0;
    assert!((3_000..6_000).contains(&waited_ms), "{waited_ms} ms");
}

#[tokio::test]
async fn a_worker_whose_clock_is_wrong_says_so_once() {
    let world = World::new().await;
    let right = world.worker(&[]).await;
    let program = world.program().args(["worker", "--no-supervisor"]);
    let wrong = program.env("HOLDPOINT_TEST_CLOCK_OFFSET_MS", "300000").spawn();
    let warns = |worker: &Process| {
        let said = lines(worker);
        said.iter().filter(|line| line.contains("the clock of this host is not")).count()
    };
    until_async("the warning", LONG, async || (warns(&wrong) > 0).then_some(())).await;
    world.serve().await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!((warns(&wrong), warns(&right)), (1, 0));
}

/// Whoever cannot wait says so by a second signal: nothing is waited for, and nobody else waits
/// for a lease.
#[tokio::test]
async fn a_second_signal_hands_back_at_once() {
    let world = World::new().await;
    let mut worker = world.worker(&["--lease", "30s", "--drain", "60s"]).await;
    let run = world.enqueue("slow", serde_json::json!({ "n": 60 })).await;
    world.until_started(&run, "slow").await;
    let began = SystemClock.monotonic();
    worker.sigterm();
    until_async("the drain to be known", LONG, async || {
        let workers = world.producer.workers().await.ok()?;
        let state = serde_json::to_value(workers.first()?).unwrap()["state"].clone();
        (state == "draining").then_some(())
    })
    .await;
    assert_eq!(worker.status(), None, "the node goes on");
    worker.sigterm();
    assert_eq!(worker.wait(LONG).code(), Some(0), "{}", worker.stderr());
    let took = SystemClock.monotonic().duration_since(began);
    assert!(took < Duration::from_secs(10), "{took:?}");
    let view = world.producer.get(&run).await.unwrap();
    assert_eq!((view.status, view.counters.lost_workers), (RunStatus::Queued, 0));
}
