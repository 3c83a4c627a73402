//! Commits that leave together in one script: each is judged and answered for itself, whatever
//! the others are.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::collections::HashMap;

use futures_util::future::join_all;
use holdpoint_graph::{End, RequestId, RunId, RunStatus};
use holdpoint_storage::{
    Claim as _, ClaimRequest, ClaimedRun, Commit as _, CommitReply, CommitRequest, Disposition,
    Enqueue as _, Inspect as _, Level, NewRun, StoreError, StoreResult,
};
use holdpoint_storage_redis::RedisStore;
use holdpoint_testkit::RedisServer;

use world::{claim, config, new_run};

mod world;

/// More than one script takes.
const RUNS: usize = 40;
const FINISHED: Disposition = Disposition::Finish { end: End::Completed };

fn name(number: usize) -> RunId {
    RunId::new(format!("r{number:02}")).unwrap()
}

/// A store whose runs are all claimed.
async fn claimed(server: &RedisServer) -> (RedisStore, Vec<ClaimedRun>) {
    let store = RedisStore::connect(config(server)).await.unwrap();
    let items: Vec<NewRun> = (0..RUNS).map(|number| new_run(name(number).as_str())).collect();
    store.enqueue(&items, false).await.unwrap();
    let runs = store.claim(&ClaimRequest { max: RUNS, ..claim("n1") }).await.unwrap().runs;
    assert_eq!(runs.len(), RUNS);
    (store, runs)
}

/// A commit that most are like: it leaves the lease as it is.
fn commit(run: &ClaimedRun, disposition: Disposition) -> CommitRequest {
    CommitRequest { lease_ms: 0, ..world::commit(run, disposition) }
}

/// Makes the calls at once; they wait together, so they leave together.
async fn all(store: &RedisStore, requests: &[CommitRequest]) -> Vec<StoreResult<CommitReply>> {
    join_all(requests.iter().map(|request| store.commit(request))).await
}

fn status(reply: &StoreResult<CommitReply>) -> RunStatus {
    let Ok(CommitReply::Done { status, .. }) = reply else { panic!("{reply:?}") };
    *status
}

/// The key of a run's part, as the server has it.
fn key(server: &RedisServer, name: &str) -> String {
    server.cli(&["--scan", "--pattern", &format!("hp:shop:*:{name}")])
}

/// How many commands of a kind came from outside of scripts.
fn calls(server: &RedisServer, command: &str) -> usize {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    let calls = line.and_then(|line| line.split_once("calls=")?.1.split(',').next());
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn commits_that_wait_share_scripts() {
    let server = RedisServer::start();
    let (store, runs) = claimed(&server).await;
    let before = calls(&server, "evalsha");
    let goes_on: Vec<_> = runs.iter().map(|run| commit(run, Disposition::Continue)).collect();
    for reply in all(&store, &goes_on).await {
        assert_eq!(status(&reply), RunStatus::Running);
    }
    let scripts = calls(&server, "evalsha") - before;
    assert!(scripts <= RUNS.div_ceil(16) + 1, "{RUNS} commits took {scripts} scripts");
    for run in &runs {
        assert_eq!(store.head(&run.head.run).await.unwrap().unwrap().seq, 1);
    }
}

#[tokio::test]
async fn each_commit_has_an_answer_of_its_own() {
    let server = RedisServer::start();
    let (store, runs) = claimed(&server).await;
    let mut requests: Vec<CommitRequest> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let ends = if number % 2 == 0 { FINISHED } else { Disposition::Continue };
        let mut request = commit(run, ends);
        match number % 5 {
            1 => request.lease.pair.nonce = "another".to_owned(),
            2 => request.from = 7,
            3 => request.lease.pair.epoch += 1,
            _ => {}
        }
        requests.push(request);
    }
    let replies = all(&store, &requests).await;
    for (number, (reply, run)) in replies.iter().zip(&runs).enumerate() {
        let head = store.head(&run.head.run).await.unwrap().unwrap();
        let written = match number % 5 {
            1 | 3 => {
                assert_eq!(reply.as_ref().unwrap(), &CommitReply::Fenced, "{number}");
                false
            }
            2 => {
                assert_eq!(reply.as_ref().unwrap(), &CommitReply::Sequence { seq: 0 }, "{number}");
                false
            }
            _ => true,
        };
        let ends = number % 2 == 0 && written;
        let expected = if ends { RunStatus::Completed } else { RunStatus::Running };
        assert_eq!((head.status(), head.seq), (expected, u64::from(written)), "{number}");
        if written {
            assert_eq!(status(reply), expected, "{number}");
        }
    }
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.level != Level::Bad), "{findings:?}");
}

/// Two calls of one request, or two of one run, must not both be written by one script.
#[tokio::test]
async fn one_run_twice_in_a_batch_is_written_once() {
    let server = RedisServer::start();
    let (store, runs) = claimed(&server).await;
    let mut requests = Vec::new();
    for run in &runs {
        let first = commit(run, Disposition::Continue);
        let request = RequestId::new(format!("other-{}", run.head.run)).unwrap();
        let other = CommitRequest { request, ..first.clone() };
        requests.extend([first.clone(), first, other]);
    }
    let replies = all(&store, &requests).await;
    for (three, run) in replies.chunks(3).zip(&runs) {
        let mut counts: HashMap<bool, usize> = HashMap::new();
        for reply in three {
            let is_done = matches!(reply, Ok(CommitReply::Done { .. }));
            assert!(is_done || matches!(reply, Ok(CommitReply::Sequence { seq: 1 })), "{reply:?}");
            *counts.entry(is_done).or_default() += 1;
        }
        assert!(matches!(counts.get(&true), Some(1 | 2)), "{three:?}");
        let part = store.journal(&run.head.run, 0, 10).await.unwrap().unwrap();
        assert_eq!((part.head.seq, part.records.len()), (1, 1), "{}", run.head.run);
    }
}

/// A damaged run is the only one whose commit fails, and nothing of it is written.
#[tokio::test]
async fn damaged_run_fails_alone() {
    let server = RedisServer::start();
    let (store, runs) = claimed(&server).await;
    let damages: [&dyn Fn(&str); 5] = [
        &|run| drop(server.cli(&["SET", &key(&server, &format!("r:{run}")), "rubbish"])),
        &|run| drop(server.cli(&["HSET", &key(&server, &format!("r:{run}")), "c", "1|x|1"])),
        &|run| drop(server.cli(&["HDEL", &key(&server, &format!("r:{run}")), "q"])),
        &|run| {
            let journal = key(&server, &format!("r:{run}")).replace(":r:", ":j:");
            drop(server.cli(&["SET", &journal, "rubbish"]));
        },
        &|run| {
            let journal = key(&server, &format!("r:{run}")).replace(":r:", ":j:");
            drop(server.cli(&["RPUSH", &journal, "rubbish"]));
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage(name(number * 3).as_str());
    }
    let requests: Vec<_> = runs.iter().map(|run| commit(run, FINISHED)).collect();
    for (number, reply) in all(&store, &requests).await.iter().enumerate() {
        if number % 3 == 0 && number / 3 < damages.len() {
            assert!(matches!(reply, Err(StoreError::Corrupt { .. })), "{number}: {reply:?}");
        } else {
            assert_eq!(status(reply), RunStatus::Completed, "{number}");
        }
    }
    let is_held = |number: usize| {
        let score = server.cli(&["ZSCORE", &key(&server, "lse"), name(number).as_str()]);
        !score.is_empty()
    };
    assert!((0..RUNS).all(|number| is_held(number) == (number % 3 == 0 && number < 15)));
}
