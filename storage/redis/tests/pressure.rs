//! A server that runs full, and what the scripts may do then.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

mod world;

use std::time::Duration;

use holdpoint_graph::{Code, End};
use holdpoint_storage::{
    Claim as _, ClaimRequest, Commit as _, CommitRequest, Disposition, Enqueue as _, Inspect as _,
    Level, NewRun, Renewal, StoreError,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::RedisServer;
use world::{HOUR_MS, World, claim, commit, config, new_run};

/// The memory that counts against the limit.
fn used(server: &RedisServer) -> u64 {
    let info = server.cli(&["INFO", "memory"]);
    let number = |name: &str| -> u64 {
        let line = info.lines().find_map(|line| line.trim().strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(':')).unwrap().parse().unwrap()
    };
    number("used_memory") - number("mem_not_counted_for_evict")
}

fn set(server: &RedisServer, setting: &str, value: &str) {
    assert_eq!(server.cli(&["CONFIG", "SET", setting, value]), "OK");
}

/// A store that reads the memory before each enqueue.
async fn watchful(server: &RedisServer) -> RedisStore {
    let config = RedisConfig { check_every: Duration::ZERO, ..config(server) };
    RedisStore::connect(config).await.unwrap()
}

/// C30, `oom_cliff`: 1 MB above what is used, with 20 running runs. New runs are refused as a
/// whole, all running ones go on to their end, none is stolen, and with space everything flows.
#[tokio::test]
async fn full_server_lets_work_end() {
    let world = World::empty().await;
    for number in 0..20 {
        world.created(&new_run(&format!("r{number}"))).await;
    }
    let all = ClaimRequest { max: 20, ..claim("n1") };
    let running = world.store.claim(&all).await.unwrap().runs;
    assert_eq!(running.len(), 20);
    let limit = used(&world.server) + (1 << 20);
    set(&world.server, "maxmemory", &limit.to_string());
    let mut stored = 0;
    let error = loop {
        let new = NewRun { payload: vec![b'x'; 20_000], ..new_run(&format!("new{stored}")) };
        match world.store.enqueue(&[new], false).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100, "it takes more than there is room for");
    };
    assert_eq!(error.code(), Code::StoreFull, "{error}");
    assert!(error.is_retryable());
    // Somebody else fills the rest, up to the limit and beyond.
    let filler = "x".repeat(2 << 20);
    set(&world.server, "maxmemory", "0");
    world.run(&["SET", "filler", &filler]);
    set(&world.server, "maxmemory", &limit.to_string());
    let before = world.dump();
    let error = world.store.enqueue(&[new_run("late")], false).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreFull, "{error}");
    assert_eq!(world.dump(), before, "nothing was stored");
    let leases: Vec<_> = running.iter().map(|run| run.lease.clone()).collect();
    let renewed = world.store.renew(&leases, HOUR_MS).await.unwrap();
    assert!(renewed.iter().all(|renewal| matches!(renewal, Renewal::Kept { .. })), "no steals");
    for run in &running {
        let go_on = CommitRequest { records: vec![vec![b'e'; 2_000]; 3], ..go_on(run) };
        world.done(&go_on).await;
        let head = world.store.head(&run.head.run).await.unwrap().unwrap();
        let end = Disposition::Finish { end: End::Completed };
        let run = holdpoint_storage::ClaimedRun { head, ..run.clone() };
        world.done(&commit(&run, end)).await;
    }
    world.run(&["DEL", "filler"]);
    set(&world.server, "maxmemory", "0");
    let store = watchful(&world.server).await;
    store.enqueue(&[new_run("late")], false).await.unwrap();
    let drained = ClaimRequest { max: 200, bytes_max: 1 << 30, ..claim("n2") };
    assert_eq!(store.claim(&drained).await.unwrap().runs.len(), stored + 1, "all are drained");
}

fn go_on(run: &holdpoint_storage::ClaimedRun) -> CommitRequest {
    let commit = commit(run, Disposition::Continue);
    CommitRequest { request: format!("go-on-{}", run.head.run).parse().unwrap(), ..commit }
}

/// C30: at 80 % of its memory a server gets no new run, though it would take it; at 70 % the
/// doctor warns and partial results are dropped; below, all goes on.
#[tokio::test]
async fn nearly_full_server_gets_no_new_run() {
    let server = RedisServer::start();
    let store = watchful(&server).await;
    let world = World::of(server, store);
    world.started("r1").await;
    let run = "r1".parse().unwrap();
    let percent = |percent: u64| {
        let limit = used(&world.server) * 100 / percent;
        set(&world.server, "maxmemory", &limit.to_string());
    };
    let warns = async || {
        let findings = world.store.check().await.unwrap();
        findings.iter().any(|f| f.level == Level::Warn && f.text.contains("% of maxmemory"))
    };
    percent(60);
    world.created(&new_run("r2")).await;
    world.store.partial(&run, 0, b"1".to_vec()).await.unwrap();
    assert!(!warns().await);
    percent(75);
    world.created(&new_run("r3")).await;
    world.store.partial(&run, 0, b"2".to_vec()).await.unwrap();
    assert_eq!(world.store.partials(&run, 0).await.unwrap().len(), 1, "the second is dropped");
    assert!(warns().await);
    percent(85);
    let before = world.dump();
    let error = world.store.enqueue(&[new_run("r4")], false).await.unwrap_err();
    let StoreError::Full { cause } = &error else { panic!("{error}") };
    assert!(cause.contains("80 %"), "{cause}");
    assert_eq!(world.dump(), before);
    assert_eq!(world.store.claim(&claim("n2")).await.unwrap().runs.len(), 1, "work goes on");
    percent(60);
    world.created(&new_run("r4")).await;
}

/// C30: a server that cannot save refuses writes, and says so.
#[tokio::test]
async fn server_that_cannot_save_is_full() {
    let server = RedisServer::start();
    let store = watchful(&server).await;
    let world = World::of(server, store);
    set(&world.server, "save", "3600 1");
    set(&world.server, "stop-writes-on-bgsave-error", "yes");
    let folder = world.server.folder().join("dump.rdb");
    std::fs::create_dir(&folder).unwrap();
    world.server.cli(&["BGSAVE"]);
    let world = &world;
    holdpoint_testkit::until_async("the save to fail", Duration::from_secs(20), async || {
        let info = world.server.cli(&["INFO", "persistence"]);
        info.contains("rdb_last_bgsave_status:err").then_some(())
    })
    .await;
    let before = world.dump();
    let error = world.store.enqueue(&[new_run("r1")], false).await.unwrap_err();
    let StoreError::Full { cause } = &error else { panic!("{error}") };
    assert!(cause.starts_with("MISCONF"), "{cause}");
    assert_eq!(world.dump(), before);
    set(&world.server, "stop-writes-on-bgsave-error", "no");
    world.created(&new_run("r1")).await;
}
