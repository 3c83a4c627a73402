//! What a worker costs that has nothing to do, and how soon it wakes.

use std::{collections::BTreeMap, time::Duration};

use holdpoint::{Clock as _, SystemClock};
use holdpoint_testkit::{Process, until_async};
use tokio::time::sleep;

use crate::world::{LONG, World};

/// Workers that idle.
const WORKERS: usize = 4;
/// How long they are left alone before.
const SETTLED: Duration = Duration::from_secs(2);
/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(12);
/// What one of them may send in a second.
const COMMANDS_MAX: f64 = 5.0;
/// The part of a core that one of them may use.
const CORE_MAX: f64 = 0.01;
/// Ticks of a process's time in a second, on every Linux.
const TICKS: f64 = 100.0;
/// Runs that wake an idle worker.
const WAKES: usize = 41;

/// The commands that clients sent. Scripts call others, but none of these.
fn sent(world: &World) -> BTreeMap<String, u64> {
    let info = world.server.cli(&["INFO", "commandstats"]);
    let counts = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let of_clients = ["evalsha", "eval", "blpop", "info", "config", "client", "script", "ping"];
        let is_sent = of_clients.iter().any(|other| name.starts_with(other));
        is_sent.then(|| (name.to_owned(), rest.split(',').next().unwrap().parse().unwrap()))
    });
    counts.collect()
}

/// The processor time of a process, in seconds.
fn used(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|at| fields[*at].parse::<f64>().unwrap()).sum();
    ticks / TICKS
}

#[tokio::test]
async fn an_idle_worker_costs_little_and_wakes_at_once() {
    let world = World::new().await;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(world.worker(&[]).await);
    }
    until_async("all workers to be there", LONG, async || {
        (world.producer.workers().await.ok()?.len() == WORKERS).then_some(())
    })
    .await;
    // What they do when they start is over.
    sleep(SETTLED).await;
    let (before, began) = (sent(&world), SystemClock.monotonic());
    let times: Vec<f64> = workers.iter().map(|worker| used(worker.pid())).collect();
    let server = used(world.server.pid());
    sleep(WATCHED).await;
    let seconds = SystemClock.monotonic().duration_since(began).as_secs_f64();
    let each = |count: u64| count as f64 / seconds / WORKERS as f64;
    let mut commands: BTreeMap<String, f64> = BTreeMap::new();
    for (name, count) in sent(&world) {
        commands.insert(name.clone(), each(count - before.get(&name).copied().unwrap_or(0)));
    }
    let total: f64 = commands.values().sum();
    let busiest = workers.iter().zip(&times).map(|(worker, then)| used(worker.pid()) - then);
    let busiest = busiest.fold(0.0, f64::max) / seconds;
    let server = (used(world.server.pid()) - server) / seconds;
    println!("{total:.2} commands/s: {commands:.2?}; {busiest:.4} cores, server {server:.4}");
    assert!(total <= COMMANDS_MAX, "{total:.2} commands/s: {commands:.2?}");
    assert!(busiest < CORE_MAX, "{busiest:.4} of a core");
    wakes(&world).await;
    workers.iter_mut().for_each(Process::sigterm);
}

/// How long it takes from the enqueue of a run to its claim, by the store's clock.
async fn wakes(world: &World) {
    let mut waits = Vec::new();
    for _ in 0..WAKES {
        let run = world.enqueue("lin", serde_json::json!({})).await;
        world.until_completed(&run).await;
        let view = world.producer.get(&run).await.unwrap();
        waits.push(view.started_at.unwrap().0 - view.created_at.0);
    }
    waits.sort_unstable();
    let (quick, p50) = (waits[WAKES / 4], waits[WAKES / 2]);
    println!("woken after {quick} ms (p25), {p50} ms (p50)");
    // A quarter, since other work on the machine makes half of them late now and then; without
    // being woken a quarter would take 250 ms.
    assert!(quick < 5, "{waits:?}");
}
