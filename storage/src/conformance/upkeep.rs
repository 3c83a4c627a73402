//! Upkeep: pruning, workers, graphs, pins, partial results, checks, namespaces.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode, RunStatus};

use super::{
    Bench,
    world::{
        HOUR_MS, PATIENCE, World, claim_request, id, lane, look_again, names, new_run, question,
        session_run, structure, to_gate, to_interrupt,
    },
};
use crate::{
    AppendKind, ClaimRequest, CommitRequest, Disposition, Enqueued, GraphRecord, IfBusy, Lane,
    Level, NewRun, Retention, RunFilter, When, WorkerRecord,
};

const AT_ONCE: Retention = Retention { done_ms: 0, failed_ms: 0, key_ms: 0 };

/// Ended runs go when they are old enough, failed ones by their own time, with all that is theirs.
pub async fn prune_takes_old_ends(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let done = world.ended("done", End::Completed).await;
    let cancelled = world.ended("cancelled", End::Cancelled).await;
    let failed = world.ended("failed", End::Failed(ReasonCode::NodeError)).await;
    let young = Retention { done_ms: HOUR_MS, failed_ms: HOUR_MS, key_ms: 0 };
    assert_eq!(world.prune(young, 100).await.unwrap(), 0);
    let keep_failed = Retention { failed_ms: HOUR_MS, ..AT_ONCE };
    assert_eq!(world.prune(keep_failed, 100).await.unwrap(), 2);
    for run in [&done, &cancelled] {
        assert!(world.head(run).await.unwrap().is_none());
        assert!(world.payload(run).await.unwrap().is_none());
        assert!(world.journal(run, 0, 9).await.unwrap().is_none());
    }
    assert_eq!(world.status_of(&failed).await, RunStatus::Failed);
    assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 1);
    let rows = world.runs(&RunFilter::default(), None, 9).await.unwrap().rows;
    assert!(rows.is_empty(), "{rows:?}");
    world.created(&new_run("done")).await;
}

/// Nothing that lives is pruned, however greedy the retention is.
pub async fn prune_never_takes_live_runs(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("scheduled") }).await;
    world.parked("parked", &[question("q1", None)]).await;
    world.running("running").await;
    world.created(&new_run("queued")).await;
    assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 0);
    for name in ["scheduled", "parked", "running", "queued"] {
        assert_eq!(world.status_of(&id(name)).await.as_str(), name);
    }
}

/// The last run of a session is its state: it stays, the ones before it go.
pub async fn prune_keeps_a_sessions_last(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["r1", "r2"] {
        world.created(&session_run(name, IfBusy::Enqueue)).await;
        let claimed = world.claim_next().await;
        world.end(&claimed, End::Completed).await;
    }
    assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 1);
    assert!(world.head(&id("r1")).await.unwrap().is_none());
    assert_eq!(world.status_of(&id("r2")).await, RunStatus::Completed);
    assert_eq!(world.session(&id("s1")).await.unwrap().unwrap().last, Some(id("r2")));
    assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 0);
}

/// A run that failed as its session's last stays the last when it is redriven and then rolled
/// back, at rest or in a worker's hands: no prune takes it.
pub async fn prune_keeps_a_last_that_came_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for (name, is_held) in [("r1", false), ("r2", true)] {
        let run = world.created(&NewRun { session: Some(id(name)), ..new_run(name) }).await;
        let claimed = world.claim_next().await;
        let failed = Disposition::Finish { end: End::Failed(ReasonCode::NodeError) };
        let mut request = world.draft(&claimed, 1, failed);
        request.pin = Some(structure("pinned"));
        world.done(&request).await;
        let redrive = world.append_now(&run).await;
        world.append(&redrive, &AppendKind::Redrive).await.unwrap();
        let mut held = None;
        if is_held {
            let lane = Lane { fingerprint: Some(structure("pinned")), ..lane() };
            let claim = ClaimRequest { lanes: vec![lane], ..claim_request("w1", 1) };
            held = Some(world.claim(&claim).await.unwrap().runs.remove(0));
        }
        let rollback = world.append_now(&run).await;
        world.append(&rollback, &AppendKind::Cancel { rollback: true }).await.unwrap();
        if let Some(held) = held {
            world.end(&held, End::Cancelled).await;
        }
        assert_eq!(world.status_of(&run).await, RunStatus::Cancelled);
        let bad = world.check().await.unwrap();
        assert!(bad.iter().all(|finding| finding.level != Level::Bad), "{bad:?}");
        assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 0);
        assert_eq!(world.session(&id(name)).await.unwrap().unwrap().last, Some(run));
    }
}

/// A prune takes no more than it is told to.
pub async fn prune_keeps_its_limit(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for number in 0..5 {
        world.ended(&format!("r{number}"), End::Completed).await;
    }
    assert_eq!(world.prune(AT_ONCE, 2).await.unwrap(), 2);
    assert_eq!(world.prune(AT_ONCE, 2).await.unwrap(), 2);
    assert_eq!(world.prune(AT_ONCE, 2).await.unwrap(), 1);
    assert_eq!(world.prune(AT_ONCE, 2).await.unwrap(), 0);
}

/// An idempotency key outlives its pruned run for its own time.
pub async fn key_outlives_its_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let keyed = |name: &str, key: &str| NewRun {
        key: Some(id(key)),
        payload_hash: "h1".to_owned(),
        ..new_run(name)
    };
    world.created(&keyed("r1", "k1")).await;
    let claimed = world.claim_next().await;
    world.end(&claimed, End::Completed).await;
    let keep_keys = Retention { key_ms: HOUR_MS, ..AT_ONCE };
    assert_eq!(world.prune(keep_keys, 100).await.unwrap(), 1);
    let said = world.create(&keyed("r2", "k1")).await;
    assert!(matches!(&said, Enqueued::Existing { run, .. } if run.as_str() == "r1"), "{said:?}");
    let other = NewRun { payload_hash: "h2".to_owned(), ..keyed("r2", "k1") };
    assert_eq!(world.create(&other).await, Enqueued::KeyConflict { run: id("r1") });

    world.created(&keyed("r3", "k3")).await;
    let claimed = world.claim_next().await;
    world.end(&claimed, End::Completed).await;
    assert_eq!(world.prune(AT_ONCE, 100).await.unwrap(), 1);
    world.created(&keyed("r4", "k3")).await;
}

/// A worker's record comes back with the store's time and the runs it holds; leaving removes it.
pub async fn workers_are_listed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let before_ms = world.now_ms().await.unwrap();
    world.beat(&worker("w1")).await.unwrap();
    world.beat(&worker("w2")).await.unwrap();
    world.running("r1").await;
    let draining = WorkerRecord { is_draining: true, ..worker("w2") };
    world.beat(&draining).await.unwrap();
    let mut workers = world.workers().await.unwrap();
    workers.sort_by(|a, b| a.worker.cmp(&b.worker));
    assert!(workers.iter().all(|worker| worker.beat_at_ms >= before_ms));
    for worker in &mut workers {
        worker.beat_at_ms = 0;
    }
    let holding = WorkerRecord { runs: vec![id("r1")], ..worker("w1") };
    assert_eq!(workers, [holding, draining]);
    world.leave(&id("w2")).await.unwrap();
    world.leave(&id("w2")).await.unwrap();
    assert_eq!(names(world.workers().await.unwrap().iter().map(|w| &w.worker)), ["w1"]);
}

/// A graph is published once for each structure; a repeat keeps the first time.
pub async fn graphs_are_published(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let record = |name: &str, version: &str| GraphRecord {
        graph: id(name),
        fingerprint: structure(version),
        drawing: format!("{{\"nodes\":[\"{version}\"]}}"),
        published_at_ms: 0,
    };
    world.publish(&record("mailer", "v1")).await.unwrap();
    let first = world.graphs().await.unwrap();
    assert_eq!(first.len(), 1);
    assert!(first[0].published_at_ms > 0);
    assert_eq!(first[0].drawing, record("mailer", "v1").drawing);
    world.let_pass(2).await;
    world.publish(&record("mailer", "v1")).await.unwrap();
    assert_eq!(world.graphs().await.unwrap(), first);
    world.publish(&record("mailer", "v2")).await.unwrap();
    world.publish(&record("other", "v1")).await.unwrap();
    assert_eq!(world.graphs().await.unwrap().len(), 3);
}

/// The runs that are pinned to a structure and have not ended are listed, page by page.
pub async fn pinned_runs_are_listed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let pinned = |name: &str| NewRun { fingerprint: Some(structure("v1")), ..new_run(name) };
    world.created(&pinned("queued")).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..pinned("late") }).await;
    world.created(&NewRun { graph: id("other"), ..pinned("foreign") }).await;
    world.created(&pinned("ended")).await;
    let request = world.append_now(&id("ended")).await;
    world.append(&request, &AppendKind::Cancel { rollback: false }).await.unwrap();
    world.created(&new_run("loose")).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.pinned(&id("mailer"), after.as_ref()).await.unwrap();
        found.extend(names(page.rows.iter().map(|head| &head.run)));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    assert_eq!(found, ["late", "queued"]);
}

/// Partial results are numbered from 1 and read after any number; they go with their run.
pub async fn partials_are_in_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    for body in ["one", "two", "three"] {
        world.partial(&run, 7, body.as_bytes().to_vec()).await.unwrap();
    }
    let all = world.partials(&run, 0).await.unwrap();
    assert_eq!(all.iter().map(|partial| partial.n).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(
        all.iter().map(|partial| &partial.body[..]).collect::<Vec<_>>(),
        [&b"one"[..], b"two", b"three"]
    );
    assert!(all.iter().all(|partial| partial.after == 7));
    assert_eq!(world.partials(&run, 2).await.unwrap(), all[2..]);
    assert!(world.partials(&run, 3).await.unwrap().is_empty());
    world.end(&claimed, End::Completed).await;
    world.prune(AT_ONCE, 9).await.unwrap();
    assert!(world.partials(&run, 0).await.unwrap().is_empty());
}

/// A watcher is woken when its run changes, long before its patience ends.
pub async fn change_wakes_the_watcher(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    world.changed(&claimed.head.run, std::time::Duration::from_millis(20)).await;
    let (store, run) = (world.store.clone(), claimed.head.run.clone());
    let watching = tokio::spawn(async move {
        while store.head(&run).await.unwrap().unwrap().seq == 0 {
            store.changed(&run, PATIENCE).await;
        }
    });
    look_again().await;
    world.done(&world.draft(&claimed, 1, Disposition::Continue)).await;
    let woken = tokio::time::timeout(PATIENCE / 2, watching).await;
    woken.expect("the watch ends long before its patience").unwrap();
}

/// A store that was only used through its calls has nothing to mend.
pub async fn sound_store_has_no_findings(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.ended("done", End::Completed).await;
    world.ended("failed", End::Failed(ReasonCode::NodeError)).await;
    world.ended("pruned", End::Cancelled).await;
    world.prune(Retention { failed_ms: HOUR_MS, ..AT_ONCE }, 1).await.unwrap();
    let parked = world.parked("parked", &[question("q1", Some("review"))]).await;
    world.answer(&parked.head.run, to_gate("later"), "early").await;
    world.parked("woken", &[question("q1", None)]).await;
    world.answer(&id("woken"), to_interrupt("q1"), "yes").await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("late") }).await;
    for name in ["s-1", "s-2"] {
        world.created(&session_run(name, IfBusy::Enqueue)).await;
    }
    world.created(&NewRun { key: Some(id("k1")), ..new_run("keyed") }).await;
    let claims = world.claim_up_to(3).await;
    world.lost(&id("w1"), "gone", &[HOUR_MS]).await.unwrap();
    assert_eq!(claims.len(), 3);
    let claimed = world.running("running").await;
    let draft = world.draft(&claimed, 2, Disposition::Continue);
    let (snapshot, pin) = (Some(b"s".to_vec()), Some(structure("v1")));
    world.done(&CommitRequest { snapshot, pin, is_progress: true, ..draft }).await;

    let findings = world.check().await.unwrap();
    let bad: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Bad).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Two namespaces of one server do not see, hinder or feed each other.
pub async fn namespaces_are_apart(bench: &dyn Bench) {
    let one = World::named(bench, "one").await;
    let two = World::named(bench, "two").await;
    assert_eq!((one.namespace().as_str(), two.namespace().as_str()), ("one", "two"));
    let keyed = NewRun { key: Some(id("k1")), ..session_run("r1", IfBusy::Reject) };
    one.created(&keyed).await;
    assert!(two.head(&keyed.run).await.unwrap().is_none());
    assert!(two.claim_up_to(5).await.is_empty());
    assert!(two.session(&id("s1")).await.unwrap().is_none());
    let other = NewRun { payload_hash: "other".to_owned(), graph: id("other"), ..keyed.clone() };
    two.created(&other).await;
    one.pause(&id("default"), true).await.unwrap();
    assert!(two.stats().await.unwrap().paused.is_empty());
    one.beat(&worker("w1")).await.unwrap();
    assert!(two.workers().await.unwrap().is_empty());

    let lanes = vec![other.lane()];
    let request = ClaimRequest { lanes, ..claim_request("w1", 5) };
    assert_eq!(two.claimed_ids(&request).await, ["r1"]);
    assert!(one.lost(&id("w1"), "gone", &[0]).await.unwrap().is_empty());
    assert_eq!(one.status_of(&id("r1")).await, RunStatus::Queued);
    assert_eq!(two.runs(&RunFilter::default(), None, 9).await.unwrap().rows.len(), 1);
}

/// A worker's record.
pub(super) fn worker(name: &str) -> WorkerRecord {
    WorkerRecord {
        worker: id(name),
        host: "host-1".to_owned(),
        pid: 4_711,
        since_ms: 1_700_000_000_000,
        beat_at_ms: 0,
        is_draining: false,
        graphs: vec![(id("mailer"), structure("v1"))],
        queues: vec![id("default")],
        concurrency: 8,
        lost_after_ms: 11_000,
        trouble: None,
        runs: Vec::new(),
    }
}
