//! The order in which things start does not matter.

use std::{sync::Arc, thread, time::Duration};

use holdpoint::{
    Clock as _, Location, Namespace, Producer, RedisConfig, RedisStore, RunRequest, SqliteConfig,
    SqliteStore, Store, SystemClock,
};
use holdpoint_testkit::{Program, ProxyMode, RedisServer, Scratch, until_async};
use tokio::time::sleep;

use crate::world::{LONG, World, lines};

/// Workers that start at once.
const WORKERS: usize = 8;
/// Rounds of them; a round takes a second, or several on a busy machine.
const ROUNDS: usize = 3;

/// Eight processes make the same new store at once, and none of them stumbles.
async fn start_at_once(url: &str, open: impl AsyncFn() -> Option<Arc<dyn Store>>) {
    let scratch = Scratch::new();
    let program = Program::example("fixtures")
        .current_dir(scratch.path())
        .env("HOLDPOINT_STORE", url)
        .env("HOLDPOINT_LEDGER", scratch.ledger().path())
        .args(["worker", "--no-supervisor"]);
    let mut workers: Vec<_> = (0..WORKERS).map(|_| program.spawn()).collect();
    let store = until_async("the store to be made", LONG, open).await;
    until_async("all workers to be ready", LONG, async || {
        let ready = store.workers().await.ok()?;
        assert!(ready.iter().all(|worker| worker.trouble.is_none()), "{ready:?}");
        (ready.len() == WORKERS).then_some(())
    })
    .await;
    for _ in 0..20 {
        let receipt = Producer::new(Arc::clone(&store)).enqueue(&RunRequest::new("lin")).await;
        let run = receipt.unwrap().run;
        until_async("a run to complete", LONG, async || {
            store.head(&run).await.unwrap().unwrap().status().is_terminal().then_some(())
        })
        .await;
    }
    let graphs = store.graphs().await.unwrap();
    for worker in &mut workers {
        worker.sigterm();
        assert_eq!(worker.wait(LONG).code(), Some(0));
        let said = lines(worker);
        // Eight processes that start may keep a small machine so busy that claims are late.
        let is_bad = |line: &&String| {
            (line.contains("WARN") || line.contains("ERROR")) && !line.contains("no answer for")
        };
        assert_eq!(said.iter().filter(is_bad).count(), 0, "{said:#?}");
    }
    let once: std::collections::BTreeSet<_> = graphs.iter().map(|g| &g.graph).collect();
    assert_eq!(once.len(), graphs.len(), "each graph was published once");
}

#[tokio::test]
async fn eight_workers_start_at_once_on_an_empty_sqlite_file() {
    for _ in 0..ROUNDS {
        let scratch = Scratch::new();
        let path = scratch.file("holdpoint.db");
        let url = format!("sqlite:{}", path.display());
        start_at_once(&url, async || {
            let location = Location::File(path.clone());
            let config = SqliteConfig {
                create_if_missing: false,
                ..SqliteConfig::new(location, Namespace::new("default").unwrap())
            };
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(config).await.ok()?);
            Some(store)
        })
        .await;
    }
}

#[tokio::test]
async fn eight_workers_start_at_once_on_an_empty_redis() {
    for _ in 0..ROUNDS {
        let server = RedisServer::start();
        start_at_once(&server.url(), async || {
            let config = RedisConfig::new(server.url(), Namespace::new("default").unwrap());
            let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config).await.ok()?);
            Some(store)
        })
        .await;
    }
}

/// What is started, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Store,
    Worker,
    Producer,
}

/// The orders of a store, two workers and a producer: 24, of which 12 differ.
fn orders() -> Vec<Vec<Part>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..4 {
        let longer = orders.iter().flat_map(|order: &Vec<Part>| {
            [Part::Store, Part::Worker, Part::Producer].map(|part| [&order[..], &[part]].concat())
        });
        orders = longer.collect();
    }
    let count = |order: &[Part], part| order.iter().filter(|other| **other == part).count();
    orders.retain(|order| count(order, Part::Store) == 1 && count(order, Part::Producer) == 1);
    orders
}

#[test]
fn everything_comes_up_in_any_order() {
    let orders = orders();
    assert_eq!(orders.len(), 12);
    for some in orders.chunks(4) {
        thread::scope(|scope| {
            for order in some {
                scope.spawn(|| {
                    let mut runtime = tokio::runtime::Builder::new_current_thread();
                    runtime.enable_all().build().unwrap().block_on(comes_up_in(order));
                });
            }
        });
    }
}

async fn comes_up_in(order: &[Part]) {
    let world = World::new().await;
    world.server.kill_9();
    let mut workers = Vec::new();
    let mut enqueued = None;
    for part in order {
        match part {
            Part::Store => world.server.restart(),
            Part::Worker => workers.push(world.start(&[])),
            Part::Producer => {
                let producer = world.producer.clone();
                enqueued = Some(tokio::spawn(async move {
                    let request = RunRequest::new("lin").allow_unknown();
                    loop {
                        if let Ok(receipt) = producer.enqueue(&request).await {
                            return receipt.run;
                        }
                        sleep(Duration::from_millis(20)).await;
                    }
                }));
            }
        }
    }
    let run = enqueued.unwrap().await.unwrap();
    world.until_completed(&run).await;
    until_async("both workers to be ready", LONG, async || {
        (world.producer.workers().await.ok()?.len() == 2).then_some(())
    })
    .await;
    for worker in &mut workers {
        worker.sigterm();
        assert_eq!(worker.wait(LONG).code(), Some(0), "{order:?}: {}", worker.stderr());
    }
}

/// A worker waits for its store and says so; a command that is to answer now does not wait.
#[tokio::test]
async fn a_worker_waits_for_an_absent_store_and_a_command_does_not() {
    let world = World::new().await;
    world.server.kill_9();
    let worker = world.start(&[]);
    for (mode, is_absent) in [(ProxyMode::Pass, true), (ProxyMode::Hold, false)] {
        world.proxy.set(mode);
        for command in [&["runs", "list"][..], &["enqueue", "lin"], &["stats"], &["workers"]] {
            let began = SystemClock.monotonic();
            let ended = world.program().args(command).run(LONG).expect_code(6);
            let took = SystemClock.monotonic().duration_since(began);
            assert!(took < Duration::from_secs(5), "{command:?} {is_absent}: {took:?}");
            assert!(ended.stderr.contains("is not available"), "{}", ended.stderr);
        }
    }
    world.proxy.set(ProxyMode::Pass);
    sleep(Duration::from_secs(2)).await;
    world.server.restart();
    let took = world.serve().await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let said = lines(&worker);
    let waits = said.iter().filter(|line| line.contains("waiting for the store")).count();
    assert!((1..=3).contains(&waits), "{said:#?}");
}
