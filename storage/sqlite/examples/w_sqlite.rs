//! Measures how many runs per second the store carries: each run is enqueued, claimed, and
//! committed three times, the last time as completed.
//!
//! ```text
//! cargo run --release -p holdpoint-storage-sqlite --example w_sqlite -- RUNS TASKS FOLDER
//! ```
#![expect(clippy::print_stdout, reason = "the figure is what the program is for")]

use std::{
    env,
    path::PathBuf,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

use holdpoint_graph::{End, Id, Kind, Namespace};
use holdpoint_storage::{
    Chain, ChainHash, Claim, ClaimRequest, ClaimedRun, Clock, Commit, CommitReply, CommitRequest,
    Disposition, Enqueue, IfBusy, Lane, NewRun, Random, SystemClock, When,
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};

/// Runs of one claim.
const BATCH: usize = 16;
/// Bytes of one record.
const RECORD_BYTES: usize = 300;

#[tokio::main]
async fn main() {
    let mut arguments = env::args().skip(1);
    let runs = arguments.next().map_or(20_000, |text| text.parse().expect("RUNS is a number"));
    let tasks = arguments.next().map_or(100, |text| text.parse().expect("TASKS is a number"));
    let folder = arguments.next().map_or_else(env::temp_dir, PathBuf::from);
    let file = folder.join(format!("holdpoint-w-{}.db", std::process::id()));
    let config =
        SqliteConfig::new(Location::File(file.clone()), Namespace::new("w").expect("it is an id"));
    let store = SqliteStore::open(config).await.expect("the store opens");

    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let start = SystemClock.monotonic();
    let work = (0..tasks).map(|task| {
        let (store, begun, done) = (store.clone(), Arc::clone(&begun), Arc::clone(&done));
        tokio::spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < runs {
                let items = [new_run()];
                store.enqueue(&items, false).await.expect("the run is stored");
                // One of so many tasks claims for all, as a worker does.
                if task % BATCH == 0 || done.load(Ordering::Relaxed) + tasks >= runs {
                    serve(&store, task, &done).await;
                }
            }
            while done.load(Ordering::Relaxed) < runs && serve(&store, task, &done).await > 0 {}
        })
    });
    let work: Vec<_> = work.collect();
    for task in work {
        task.await.expect("no task fails");
    }
    let elapsed = SystemClock.monotonic().duration_since(start);
    let done = done.load(Ordering::Relaxed);
    let rate = done as f64 / elapsed.as_secs_f64();
    println!("{done} runs by {tasks} tasks in {elapsed:.2?}: {rate:.0} runs/s");
    for end in ["", "-wal", "-shm"] {
        let mut name = file.clone().into_os_string();
        name.push(end);
        drop(std::fs::remove_file(name));
    }
}

/// Claims a batch and executes its runs at the same time. Returns how many there were.
async fn serve(store: &SqliteStore, task: usize, done: &Arc<AtomicUsize>) -> usize {
    let request = ClaimRequest {
        worker: id(&format!("w{task}")),
        nonce: Random.nonce(),
        lanes: vec![Lane { queue: id("default"), graph: id("bench"), fingerprint: None }],
        max: BATCH,
        lease_ms: 10_000,
        oldest_first: false,
        bytes_max: 1 << 20,
    };
    let claims = store.claim(&request).await.expect("runs are claimed");
    let count = claims.runs.len();
    let tasks: Vec<_> = claims
        .runs
        .into_iter()
        .map(|claimed| {
            let (store, done) = (store.clone(), Arc::clone(done));
            tokio::spawn(async move {
                execute(&store, claimed).await;
                done.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no run fails");
    }
    count
}

async fn execute(store: &SqliteStore, claimed: ClaimedRun) {
    let namespace = Namespace::new("w").expect("it is an id");
    let mut place = Chain::start(&namespace, &claimed.lease.run).hash();
    for n in 0..3_u64 {
        let hash = ChainHash(format!("{n:032x}"));
        let disposition = match n {
            2 => Disposition::Finish { end: End::Completed },
            _ => Disposition::Continue,
        };
        let request = CommitRequest {
            lease: claimed.lease.clone(),
            request: Random.request_id(),
            from: n,
            previous: place,
            records: vec![vec![n as u8; RECORD_BYTES]],
            hash: hash.clone(),
            snapshot: None,
            consumed: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            is_progress: true,
            pin: None,
            lease_ms: 10_000,
            disposition,
        };
        let reply = store.commit(&request).await.expect("the commit is stored");
        assert!(matches!(reply, CommitReply::Done { .. }), "{reply:?}");
        place = hash;
    }
}

fn new_run() -> NewRun {
    NewRun {
        run: Random.run_id(SystemClock.wall_ms()),
        request: Random.request_id(),
        graph: id("bench"),
        fingerprint: None,
        queue: id("default"),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: vec![b'p'; 450],
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

fn id<K: Kind>(text: &str) -> Id<K> {
    Id::new(text).expect("the ids of this file are ids")
}
