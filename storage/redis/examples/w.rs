//! How many runs a second the store takes: enqueued one by one, claimed in batches, three commits
//! each, the last of which ends the run; 100 at once, all driven through the traits.
//!
//! ```text
//! cargo run --release -p holdpoint-storage-redis --example w [-- URL]
//! ```
//!
//! Without a URL it starts a server of its own, once with `everysec` and once with `always`.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, not a service")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use holdpoint_graph::{End, GraphId, Namespace, QueueId, WorkerId};
use holdpoint_storage::{
    ChainHash, Claim as _, ClaimRequest, ClaimedRun, Clock as _, Commit as _, CommitReply,
    CommitRequest, Disposition, Enqueue as _, Lane, NewRun, Random, SystemClock, When,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{Appendfsync, RedisServer};
use tokio::{sync::Semaphore, task::JoinSet};

const AT_ONCE: usize = 100;
const RUNS: usize = 40_000;
const BATCH: usize = 32;
const RECORD_BYTES: usize = 300;

#[tokio::main]
async fn main() {
    if let Some(url) = std::env::args().nth(1) {
        return measure("the given server", &url).await;
    }
    for (name, sync) in [("everysec", Appendfsync::Everysec), ("always", Appendfsync::Always)] {
        let server = RedisServer::config().appendfsync(sync).start();
        measure(name, &server.url()).await;
    }
}

async fn measure(name: &str, url: &str) {
    let namespace = Namespace::new(format!("w-{}", Random.token())).unwrap();
    let store = RedisStore::connect(RedisConfig::new(url, namespace)).await.unwrap();
    let started = SystemClock.monotonic();
    produce(&store, RUNS).await;
    println!("{name}: {:>6.0} enqueued/s alone", RUNS as f64 / started.elapsed().as_secs_f64());
    let started = SystemClock.monotonic();
    consume(&store, RUNS).await;
    println!("{name}: {:>6.0} runs/s alone", RUNS as f64 / started.elapsed().as_secs_f64());
    let started = SystemClock.monotonic();
    tokio::join!(produce(&store, RUNS), consume(&store, RUNS));
    println!("{name}: {:>6.0} runs/s, all in all", RUNS as f64 / started.elapsed().as_secs_f64());
    pick_up(name, &store).await;
}

async fn produce(store: &RedisStore, count: usize) {
    let left = Arc::new(AtomicUsize::new(count));
    let mut tasks = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (store, left) = (store.clone(), Arc::clone(&left));
        tasks.spawn(async move {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                store.enqueue(&[new_run()], false).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
}

async fn consume(store: &RedisStore, count: usize) {
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut claimed = 0;
    while claimed < count {
        let batch = BATCH.min(count - claimed);
        let mut permits = free.clone().acquire_many_owned(batch as u32).await.unwrap();
        let claims = store.claim(&claim(batch)).await.unwrap();
        claimed += claims.runs.len();
        if claims.runs.is_empty() {
            drop(permits);
            store.wait(&[lane()], Duration::from_millis(100)).await;
            continue;
        }
        for run in claims.runs {
            let (store, permit) = (store.clone(), permits.split(1).unwrap());
            tasks.spawn(async move {
                execute(&store, run).await;
                drop(permit);
            });
        }
        while tasks.try_join_next().is_some() {}
    }
    tasks.join_all().await;
}

async fn execute(store: &RedisStore, run: ClaimedRun) {
    let mut hash = run.head.hash.clone();
    for from in 0..3 {
        let next = ChainHash(format!("{:032x}", from + 1));
        let disposition = match from {
            2 => Disposition::Finish { end: End::Completed },
            _ => Disposition::Continue,
        };
        let request = CommitRequest {
            lease: run.lease.clone(),
            request: Random.request_id(),
            from,
            previous: hash,
            records: vec![vec![b'r'; RECORD_BYTES]],
            hash: next.clone(),
            snapshot: None,
            consumed: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            is_progress: true,
            pin: None,
            lease_ms: 10_000,
            disposition,
        };
        let reply = store.commit(&request).await.unwrap();
        assert!(matches!(reply, CommitReply::Done { .. }), "{reply:?}");
        hash = next;
    }
}

/// From an enqueue to the claim of a worker that was idle.
async fn pick_up(name: &str, store: &RedisStore) {
    let mut times = Vec::new();
    for _ in 0..200 {
        let waiter = store.clone();
        let waiting = tokio::spawn(async move {
            loop {
                let claims = waiter.claim(&claim(1)).await.unwrap();
                if let Some(run) = claims.runs.into_iter().next() {
                    return (SystemClock.monotonic(), run);
                }
                waiter.wait(&[lane()], Duration::from_secs(1)).await;
            }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let started = SystemClock.monotonic();
        store.enqueue(&[new_run()], false).await.unwrap();
        let (ended, run) = waiting.await.unwrap();
        times.push(ended - started);
        execute(store, run).await;
    }
    times.sort();
    println!("{name}: idle pick-up p50 {:?}, p99 {:?}", times[100], times[198]);
}

fn new_run() -> NewRun {
    NewRun {
        run: Random.run_id(SystemClock.wall_ms()),
        request: Random.request_id(),
        graph: GraphId::new("flow").unwrap(),
        fingerprint: None,
        queue: QueueId::new("default").unwrap(),
        session: None,
        if_busy: holdpoint_storage::IfBusy::Enqueue,
        payload: vec![b'p'; 400],
        payload_hash: Random.token(),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: Vec::new(),
        queue_depth_max: 1_000_000,
    }
}

fn lane() -> Lane {
    Lane {
        queue: QueueId::new("default").unwrap(),
        graph: GraphId::new("flow").unwrap(),
        fingerprint: None,
    }
}

fn claim(max: usize) -> ClaimRequest {
    ClaimRequest {
        worker: WorkerId::new("w1").unwrap(),
        nonce: Random.nonce(),
        lanes: vec![lane()],
        max,
        lease_ms: 10_000,
        oldest_first: false,
        bytes_max: 1024 * 1024,
    }
}
