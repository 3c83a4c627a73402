//! A dump of a real store: what it reads, and that it sees what was done to a journal.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::path::Path;

use holdpoint_graph::{End, Event, Namespace};
use holdpoint_storage::{
    Chain, Claim, ClaimRequest, ClaimedRun, Commit, CommitReply, CommitRequest, Disposition,
    Enqueue, IfBusy, Level, NewRun, When,
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_torture_check::{Dump, Extra, History, check};
use rusqlite::Connection;

fn namespace() -> Namespace {
    Namespace::new("test").unwrap()
}

async fn open(folder: &Path) -> SqliteStore {
    let file = Location::File(folder.join("store.db"));
    SqliteStore::open(SqliteConfig::new(file, namespace())).await.unwrap()
}

fn new_run(name: &str) -> NewRun {
    NewRun {
        run: name.parse().unwrap(),
        request: format!("new-{name}").parse().unwrap(),
        graph: "line".parse().unwrap(),
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

/// Claims the one run that waits and writes these events, after which it has ended.
async fn end(store: &SqliteStore, events: &[Event]) {
    let request = ClaimRequest {
        worker: "w".parse().unwrap(),
        nonce: "nonce".to_owned(),
        lanes: vec![new_run("any").lane()],
        max: 1,
        lease_ms: 60_000,
        oldest_first: false,
        bytes_max: 1 << 20,
    };
    let claims = store.claim(&request).await.unwrap();
    let ClaimedRun { head, lease, .. } = claims.runs.into_iter().next().unwrap();
    let mut chain = Chain::at(&namespace(), &head.run, head.seq, &head.hash).unwrap();
    let (from, previous, epoch) = (chain.seq(), chain.hash(), lease.pair.epoch);
    let records = events.iter().map(|event| chain.encode(claims.now_ms, epoch, event)).collect();
    let commit = CommitRequest {
        lease,
        request: "q".parse().unwrap(),
        from,
        previous,
        records,
        hash: chain.hash(),
        snapshot: None,
        consumed: vec![],
        opened: vec![],
        closed: vec![],
        is_progress: true,
        pin: None,
        lease_ms: 60_000,
        disposition: Disposition::Finish { end: End::Completed },
    };
    let reply = store.commit(&commit).await.unwrap();
    assert!(matches!(reply, CommitReply::Done { .. }), "{reply:?}");
}

/// A store with a run that has ended and one that waits.
async fn store(folder: &Path) -> SqliteStore {
    let store = open(folder).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let claimed = |epoch| Event::Claimed { worker: "w".parse().unwrap(), epoch, at_ms: 1 };
    end(&store, &[claimed(1), claimed(2), Event::RunCompleted]).await;
    store.enqueue(&[new_run("r2")], false).await.unwrap();
    store
}

#[tokio::test]
async fn a_dump_has_every_run_with_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let dump = Dump::take(&store).await.unwrap();
    let mut seen: Vec<_> = dump
        .runs
        .iter()
        .map(|run| (run.run.as_str(), run.status.as_str(), run.events.len() as u64 == run.seq))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("r1", "completed", true), ("r2", "queued", true)]);
    let ended = dump.runs.iter().find(|run| run.run == "r1").unwrap();
    assert_eq!(ended.damage, None);
    assert_eq!(ended.events.last().unwrap().event, Event::RunCompleted);
    assert_eq!(dump.counted, 2);
    assert!(dump.findings.iter().all(|finding| finding.level != Level::Bad));
    let found = check(&History::default(), &dump, &Extra::default());
    assert_eq!((found.stored.chain.count, found.stored.conservation.count), (0, 0));
}

/// One damage after the other, each to a fresh store.
#[tokio::test]
async fn a_dump_sees_what_was_done_to_a_journal() {
    let damages = [
        "UPDATE events SET body = zeroblob(60) WHERE n = 1",
        "UPDATE events SET body = (SELECT body FROM events AS e WHERE e.n = 0) WHERE n = 1",
        "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'claimed', 'claimeD') AS BLOB) \
         WHERE n = 1",
        "DELETE FROM events WHERE n = (SELECT max(n) FROM events)",
        "DELETE FROM events WHERE n = 1",
    ];
    for damage in damages {
        let folder = tempfile::tempdir().unwrap();
        drop(store(folder.path()).await);
        let rows = {
            let file = Connection::open(folder.path().join("store.db")).unwrap();
            file.execute(damage, []).unwrap()
        };
        assert_eq!(rows, 1, "{damage}");
        let dump = Dump::take(&open(folder.path()).await).await.unwrap();
        let found = check(&History::default(), &dump, &Extra::default());
        assert_eq!(found.stored.chain.count, 1, "{damage}: {:?}", found.stored);
    }
}
