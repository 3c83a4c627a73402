//! One file with several handles, as several processes have it, and damage to it.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::{path::Path, sync::Arc, time::Duration};

use holdpoint_graph::{Namespace, RunId, RunStatus};
use holdpoint_storage::{
    Claim, ClaimRequest, Enqueue, Enqueued, IfBusy, Inspect, Lane, Level, Maintain, NewRun,
    StoreError, When,
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use rusqlite::Connection;

/// Longer than any test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

async fn open(folder: &Path) -> SqliteStore {
    let file = Location::File(folder.join("store.db"));
    let config = SqliteConfig::new(file, Namespace::new("test").unwrap());
    SqliteStore::open(config).await.unwrap()
}

fn new_run(name: &str) -> NewRun {
    NewRun {
        run: name.parse().unwrap(),
        request: format!("new-{name}").parse().unwrap(),
        graph: "mailer".parse().unwrap(),
        fingerprint: None,
        queue: "default".parse().unwrap(),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: vec![1, 2, 3],
        payload_hash: "hash".to_owned(),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: Vec::new(),
        queue_depth_max: 1_000,
    }
}

fn lane() -> Lane {
    new_run("any").lane()
}

fn claim(worker: &str, max: usize) -> ClaimRequest {
    ClaimRequest {
        worker: worker.parse().unwrap(),
        nonce: format!("nonce-of-{worker}"),
        lanes: vec![lane()],
        max,
        lease_ms: 60_000,
        oldest_first: false,
        bytes_max: 1 << 20,
    }
}

fn run(name: &str) -> RunId {
    name.parse().unwrap()
}

#[tokio::test]
async fn what_one_handle_stores_the_other_claims() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()).await, open(folder.path()).await);
    one.enqueue(&[new_run("r1")], false).await.unwrap();
    let claims = two.claim(&claim("w2", 5)).await.unwrap();
    assert_eq!(claims.runs[0].head.run, run("r1"));
    assert_eq!(one.head(&run("r1")).await.unwrap().unwrap().status(), RunStatus::Running);
    assert!(one.claim(&claim("w1", 5)).await.unwrap().runs.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_handles_never_claim_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [open(folder.path()).await, open(folder.path()).await];
    let items: Vec<NewRun> = (0..60).map(|n| new_run(&format!("r{n}"))).collect();
    stores[0].enqueue(&items, false).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(
                async move { store.claim(&claim(&format!("w{n}"), 3)).await.unwrap().runs },
            )
        })
        .collect();
    let mut claimed = Vec::new();
    for task in tasks {
        claimed.extend(task.await.unwrap().into_iter().map(|run| run.head.run.to_string()));
    }
    let count = claimed.len();
    claimed.sort();
    claimed.dedup();
    assert_eq!((claimed.len(), count), (60, 60));
}

/// Calls that come together are committed together: a follower of the file sees few commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let wal = folder.path().join("store.db-wal");
    let blocker = Connection::open(folder.path().join("store.db")).unwrap();
    let before = std::fs::metadata(&wal).unwrap().len();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.enqueue(&[new_run(&format!("r{n}"))], false).await })
        })
        .collect();
    // The writer waits for the lock with the first call, and the others gather behind it.
    tokio::task::yield_now().await;
    blocker.execute_batch("ROLLBACK").unwrap();
    for call in calls {
        let said = call.await.unwrap().unwrap().items;
        assert!(matches!(said[0], Enqueued::Created { .. }), "{said:?}");
    }
    // One by one they would write eight pages each at least.
    let pages = (std::fs::metadata(&wal).unwrap().len() - before) / 4_096;
    assert!(pages < 400, "100 calls wrote {pages} pages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_comes_wakes_the_other_handle() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()).await, open(folder.path()).await);
    let waiting = tokio::spawn(async move { two.wait(&[lane()], PATIENCE).await });
    one.enqueue(&[new_run("r1")], false).await.unwrap();
    let woken = tokio::time::timeout(PATIENCE / 2, waiting).await;
    woken.expect("woken long before the patience ends").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_wakes_who_follows_with_the_other_handle() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()).await, Arc::new(open(folder.path()).await));
    one.enqueue(&[new_run("r1")], false).await.unwrap();
    let following = {
        let two = Arc::clone(&two);
        tokio::spawn(async move {
            while two.head(&run("r1")).await.unwrap().unwrap().status() != RunStatus::Running {
                two.changed(&run("r1"), Duration::from_millis(500)).await;
            }
        })
    };
    one.claim(&claim("w1", 1)).await.unwrap();
    tokio::time::timeout(PATIENCE / 2, following).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_paused_queue_wakes_nobody_until_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let queue = new_run("r1").queue;
    store.pause(&queue, true).await.unwrap();
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let lanes = [lane()];
    let short = tokio::time::timeout(Duration::from_millis(60), store.wait(&lanes, PATIENCE));
    assert!(short.await.is_err(), "nothing can be claimed");
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.wait(&[lane()], PATIENCE).await })
    };
    store.pause(&queue, false).await.unwrap();
    tokio::time::timeout(PATIENCE / 2, waiting).await.unwrap().unwrap();
}

/// Damages the row of run `bad` with one statement; `good` must not notice.
async fn check_damage(damage: &str, why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.enqueue(&[new_run("bad"), new_run("good")], false).await.unwrap();
    let conn = Connection::open(folder.path().join("store.db")).unwrap();
    conn.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    conn.execute_batch(damage).unwrap();

    let error = store.head(&run("bad")).await.unwrap_err();
    let StoreError::Corrupt { what, why: said } = &error else { panic!("{error:?}") };
    assert_eq!(what, "run bad");
    assert!(said.contains(why), "{damage}: {said}");
    let claims = store.claim(&claim("w1", 5)).await.unwrap();
    assert_eq!(claims.runs.len(), 1, "{damage}");
    assert_eq!(claims.runs[0].head.run, run("good"));
    let bad = store.check().await.unwrap().into_iter().filter(|f| f.level != Level::Ok);
    assert!(bad.map(|f| f.text).any(|text| text.contains("run bad")), "{damage}");
}

#[tokio::test]
async fn damaged_heads_are_named_and_left() {
    check_damage("UPDATE runs SET status = 'lost' WHERE id = 'bad'", "\"lost\"").await;
    check_damage("UPDATE runs SET epoch = -1 WHERE id = 'bad'", "-1").await;
    check_damage("UPDATE runs SET lane = 99 WHERE id = 'bad'", "lane 99").await;
    check_damage("UPDATE runs SET cancel = 'maybe' WHERE id = 'bad'", "\"maybe\"").await;
    check_damage("UPDATE runs SET tags = '[' WHERE id = 'bad'", "EOF").await;
    check_damage("UPDATE runs SET session = '/' WHERE id = 'bad'", "session").await;
}

/// Each kind of damage is one finding of the doctor.
#[tokio::test]
async fn orphans_and_wrong_counts_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    store.enqueue(&[new_run("r1"), new_run("r2")], false).await.unwrap();
    store.claim(&claim("w1", 1)).await.unwrap();
    let conn = Connection::open(folder.path().join("store.db")).unwrap();
    let check = async |damage: &str, kind: &str, repair: &str| {
        conn.execute_batch(damage).unwrap();
        let found = store.check().await.unwrap();
        let bad: Vec<_> = found.iter().filter(|found| found.level == Level::Bad).collect();
        assert_eq!(bad.len(), 1, "{damage}: {bad:?}");
        assert_eq!(bad[0].check, kind, "{damage}");
        conn.execute_batch(repair).unwrap();
    };
    let event = "INSERT INTO events (run, n, body) VALUES (99, 0, x'00')";
    check(event, "orphans", "DELETE FROM events").await;
    let event = "INSERT INTO events (run, n, body) VALUES (1, 0, x'00')";
    check(event, "parts", "DELETE FROM events").await;
    let delete = "DELETE FROM payloads WHERE run = 2";
    check(delete, "parts", "INSERT INTO payloads VALUES (2, x'01')").await;
    let ready = "UPDATE runs SET ready = 0 WHERE key = 2";
    check(ready, "places", "UPDATE runs SET ready = 1 WHERE key = 2").await;
    let count = "UPDATE counts SET n = n + 1 WHERE status = 'running'";
    check(count, "conservation", "UPDATE counts SET n = n - 1 WHERE status = 'running'").await;
    let found = store.check().await.unwrap();
    assert!(found.iter().all(|found| found.level == Level::Ok), "{found:?}");
}
