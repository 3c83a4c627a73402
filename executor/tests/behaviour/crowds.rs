//! Many at once: the first start of a store, and many writers of one file.

use std::{sync::Arc, time::Duration};

use holdpoint_graph::{Namespace, RunStatus};
use holdpoint_storage::{Clock as _, Store, SystemClock};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::{RedisServer, Scratch};
use serde_json::json;

use crate::{bench::Bench, nodes::line};

async fn sqlite(file: std::path::PathBuf) -> Arc<dyn Store> {
    let config = SqliteConfig::new(Location::File(file), Namespace::new("test").unwrap());
    Arc::new(SqliteStore::open(config).await.unwrap())
}

/// A server that is too busy to answer in time is asked again, as a worker does.
async fn redis(url: String, namespace: String) -> Arc<dyn Store> {
    let config = RedisConfig::new(url, Namespace::new(&namespace).unwrap());
    loop {
        match RedisStore::connect(config.clone()).await {
            Ok(store) => return Arc::new(store),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

/// CP-17: eight that start on an empty store at once are all ready, and it is one store: what the
/// first takes in, the last claims.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_set_up_once_whoever_starts_first() {
    let (scratch, server) = (Scratch::new(), RedisServer::start());
    for round in 0..10 {
        let file = scratch.path().join(format!("store-{round}.db"));
        let (url, name) = (server.url(), format!("n{round}"));
        let files = (0..8).map(|_| tokio::spawn(sqlite(file.clone())));
        let mut kinds = vec![files.collect::<Vec<_>>()];
        kinds.push((0..8).map(|_| tokio::spawn(redis(url.clone(), name.clone()))).collect());
        for opening in kinds {
            let mut benches = Vec::new();
            for opened in opening {
                benches.push(Bench::new(opened.await.unwrap()));
            }
            let (first, last) = (benches[0].clone(), benches.last_mut().unwrap());
            let log = last.log();
            last.add(line("line", &["a"], &log).compile().unwrap());
            let run = first.enqueue("line", json!({})).await;
            last.work().await;
            assert_eq!(first.status(&run).await, RunStatus::Completed);
            let bad = |finding: &holdpoint_storage::Finding| {
                finding.level == holdpoint_storage::Level::Bad
            };
            let findings = first.store.check().await.unwrap();
            assert!(!findings.iter().any(bad), "{findings:?}");
        }
    }
}

/// CP-13: two openings of one file, as two processes have it, with twenty writers each and readers
/// beside them: no lock reaches a run. How long the slowest writes took is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lock_reaches_a_run() {
    let scratch = Scratch::new();
    let file = scratch.path().join("store.db");
    let mut benches = vec![Bench::new(sqlite(file.clone()).await), Bench::new(sqlite(file).await)];
    let log = benches[0].log();
    for bench in &mut benches {
        bench.add(line("line", &["a", "b", "c"], &log).compile().unwrap());
    }
    let writers = (0..40).map(|n| {
        let bench = benches[n % 2].clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            for _ in 0..5 {
                let begun = SystemClock.monotonic();
                bench.enqueue("line", json!({})).await;
                took.push(begun.elapsed());
                bench.work().await;
                let filter = holdpoint_storage::RunFilter::default();
                bench.store.runs(&filter, None, 50).await.unwrap();
            }
            took
        })
    });
    let mut took = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        took.extend(writer.await.unwrap());
    }
    benches[0].drain().await;
    assert_eq!(log.count("a"), 200);
    let stats = benches[1].store.stats().await.unwrap();
    assert!(stats.counts.contains(&(RunStatus::Completed, 200)), "{:?}", stats.counts);
    took.sort_unstable();
    eprintln!("write p99 {:?}", took[took.len() * 99 / 100]);
    assert!(took.iter().all(|took| *took < Duration::from_secs(60)), "{took:?}");
}
