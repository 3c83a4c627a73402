//! Whatever happens to the store or to the way there: the worker serves again within 10 s of its
//! end, by itself, and fills no log meanwhile.

use std::{thread, time::Duration};

use holdpoint::{Clock as _, RunId, SystemClock};
use holdpoint_testkit::{Process, ProxyMode, until_async};
use tokio::time::sleep;

use crate::world::{LONG, World, lines};

/// How soon after the end of a fault the worker must have served.
const AGAIN_WITHIN: Duration = Duration::from_secs(10);
/// Runs in progress during a fault: what is said must not grow with them.
const RUNS: usize = 6;
/// Lines in a second that are too many.
const LINES_MAX: f64 = 2.0;

#[test]
fn the_worker_serves_again_after_faults_of_the_server() {
    at_once(&[
        scripts_are_flushed,
        everything_is_flushed,
        the_server_becomes_a_replica_for_a_while,
        connections_are_killed_again_and_again,
        the_server_is_away_for_a_second,
        the_server_is_shut_down_in_order,
    ]);
}

#[test]
fn the_worker_serves_again_after_the_store_was_slow_or_away() {
    at_once(&[
        clients_are_paused,
        the_server_sleeps,
        the_store_stalls_for_less_than_a_lease,
        the_server_loads_for_long,
        the_server_is_away_for_long,
    ]);
}

#[test]
fn the_worker_serves_again_after_faults_of_the_way() {
    at_once(&[
        connections_are_cut,
        connections_are_refused_for_a_while,
        connections_are_forgotten,
        nothing_passes_for_a_while,
        no_reply_comes_for_a_while,
    ]);
}

/// Plays faults at the same time, each with a store of its own.
fn at_once(faults: &[fn()]) {
    thread::scope(|scope| faults.iter().for_each(|fault| drop(scope.spawn(fault))));
}

/// What a fault may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// No node in progress is given up.
    Nothing,
    /// The lease may end, and its node is done again.
    Lease,
    /// The store forgets everything.
    Data,
}

/// Plays a fault while a node is in progress. `fault` returns when it is over.
fn check(name: &str, lease: &str, cost: Cost, fault: impl AsyncFn(&World)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play(name, lease, cost, fault));
}

async fn play(name: &str, lease: &str, cost: Cost, fault: impl AsyncFn(&World)) {
    let world = World::new().await;
    let mut worker = world.worker(&["--lease", lease]).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(world.enqueue("slow", serde_json::json!({ "n": 2 })).await);
    }
    for run in &runs {
        world.until_started(run, "slow").await;
    }
    let (said, began) = (lines(&worker).len(), SystemClock.monotonic());
    fault(&world).await;
    let over = SystemClock.monotonic();
    world.serve().await;
    let again = SystemClock.monotonic().duration_since(over);
    if cost != Cost::Data {
        for run in &runs {
            world.until_completed(run).await;
        }
    }
    let said = lines(&worker).split_off(said);
    let seconds = SystemClock.monotonic().duration_since(began).as_secs_f64();
    let starts = |run: &RunId| world.ledger().count(run.as_str(), "slow", "start");
    let most = runs.iter().map(starts).max().unwrap();
    println!("{name}: again after {again:?}, {} lines in {seconds:.1} s", said.len());
    assert!(again < AGAIN_WITHIN, "{name}: {again:?} {said:#?}");
    assert!((said.len() as f64) < LINES_MAX * seconds.max(2.0), "{name}: {seconds} s: {said:#?}");
    match cost {
        Cost::Nothing => assert_eq!(most, 1, "{name}: {said:#?}"),
        Cost::Lease => assert!(most <= 2, "{name}: {most} {said:#?}"),
        Cost::Data => {
            let told = said.iter().filter(|line| line.contains("registers anew")).count();
            assert_eq!(told, 1, "{name}: {said:#?}");
            until_async("the worker to register anew", LONG, async || {
                let workers = world.producer.workers().await.ok()?;
                workers.iter().any(|known| known.pid == worker.pid()).then_some(())
            })
            .await;
        }
    }
    ends_in_order(&mut worker);
}

fn ends_in_order(worker: &mut Process) {
    assert_eq!(worker.status(), None, "it still runs: {}", worker.stderr());
    worker.sigterm();
    assert_eq!(worker.wait(LONG).code(), Some(0), "{}", worker.stderr());
}

fn scripts_are_flushed() {
    check("scripts_are_flushed", "4s", Cost::Nothing, async |world| {
        world.server.cli(&["SCRIPT", "FLUSH"]);
    });
}

fn everything_is_flushed() {
    check("everything_is_flushed", "4s", Cost::Data, async |world| {
        world.server.cli(&["FLUSHALL"]);
    });
}

fn the_server_becomes_a_replica_for_a_while() {
    check("the_server_becomes_a_replica_for_a_while", "2s", Cost::Lease, async |world| {
        world.server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
        sleep(Duration::from_secs(3)).await;
        world.server.cli(&["REPLICAOF", "NO", "ONE"]);
    });
}

fn clients_are_paused() {
    check("clients_are_paused", "5s", Cost::Nothing, async |world| {
        world.server.cli(&["CLIENT", "PAUSE", "2000", "ALL"]);
        sleep(Duration::from_secs(2)).await;
    });
}

fn the_server_sleeps() {
    check("the_server_sleeps", "5s", Cost::Nothing, async |world| {
        world.server.cli(&["DEBUG", "SLEEP", "2"]);
    });
}

fn connections_are_killed_again_and_again() {
    check("connections_are_killed_again_and_again", "4s", Cost::Nothing, async |world| {
        for _ in 0..20 {
            world.server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            sleep(Duration::from_millis(100)).await;
        }
    });
}

fn the_server_is_away_for_a_second() {
    check("the_server_is_away_for_a_second", "4s", Cost::Nothing, async |world| {
        world.server.kill_9();
        sleep(Duration::from_secs(1)).await;
        world.server.restart();
    });
}

fn the_server_is_shut_down_in_order() {
    check("the_server_is_shut_down_in_order", "4s", Cost::Nothing, async |world| {
        world.server.shut_down();
        sleep(Duration::from_secs(1)).await;
        world.server.restart();
    });
}

fn the_server_is_away_for_long() {
    check("the_server_is_away_for_long", "2s", Cost::Lease, async |world| {
        world.server.kill_9();
        sleep(Duration::from_secs(12)).await;
        world.server.restart();
    });
}

fn the_server_loads_for_long() {
    check("the_server_loads_for_long", "2s", Cost::Lease, async |world| {
        for n in 0..30 {
            world.enqueue("lin", serde_json::json!({ "n": n })).await;
        }
        world.server.cli(&["CONFIG", "SET", "key-load-delay", "10000"]);
        let conf = world.server.folder().join("redis.conf");
        let text = std::fs::read_to_string(&conf).unwrap() + "key-load-delay 10000\n";
        std::fs::write(&conf, text).unwrap();
        world.server.restart();
    });
}

fn the_store_stalls_for_less_than_a_lease() {
    check("the_store_stalls_for_less_than_a_lease", "5s", Cost::Nothing, async |world| {
        for stall_ms in [300, 800, 3_000] {
            world.server.pause();
            sleep(Duration::from_millis(stall_ms)).await;
            world.server.resume();
            sleep(Duration::from_millis(200)).await;
        }
    });
}

fn connections_are_cut() {
    check("connections_are_cut", "4s", Cost::Nothing, async |world| {
        world.proxy.cut();
    });
}

fn connections_are_refused_for_a_while() {
    check("connections_are_refused_for_a_while", "2s", Cost::Lease, async |world| {
        world.proxy.set(ProxyMode::Refuse);
        sleep(Duration::from_secs(4)).await;
        world.proxy.set(ProxyMode::Pass);
    });
}

/// A firewall forgot the connections: nobody is told that they are dead.
fn connections_are_forgotten() {
    check("connections_are_forgotten", "10s", Cost::Nothing, async |world| {
        assert!(world.proxy.forget() > 0);
    });
}

fn nothing_passes_for_a_while() {
    check("nothing_passes_for_a_while", "2s", Cost::Lease, async |world| {
        world.proxy.set(ProxyMode::Hold);
        sleep(Duration::from_secs(4)).await;
        world.proxy.set(ProxyMode::Pass);
    });
}

fn no_reply_comes_for_a_while() {
    check("no_reply_comes_for_a_while", "4s", Cost::Nothing, async |world| {
        world.proxy.set(ProxyMode::DropReplies);
        sleep(Duration::from_secs(2)).await;
        world.proxy.set(ProxyMode::Pass);
    });
}
