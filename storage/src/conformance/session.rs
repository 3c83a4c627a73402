//! Sessions: one active run each, the others wait in order.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, Fingerprint, ReasonCode, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, claim_request, id, names, new_run, question, session_run},
};
use crate::{
    AppendKind, CancelWish, CommitReply, Disposition, Enqueued, IfBusy, NewRun, SessionRecord, When,
};

/// One run of a session at a time, in the order they came; the next is claimable at once when the
/// active one ends, and each is told the last one that ended.
pub async fn session_runs_one_by_one(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["r1", "r2", "r3"] {
        world.created(&session_run(name, IfBusy::Enqueue)).await;
    }
    let mut last = None;
    for name in ["r1", "r2", "r3"] {
        let mut claims = world.claim_up_to(5).await;
        assert_eq!(claims.len(), 1, "only the head of the order");
        let claimed = claims.remove(0);
        assert_eq!((claimed.head.run.as_str(), claimed.session_last.clone()), (name, last));
        assert!(world.claim_up_to(5).await.is_empty(), "the others wait");
        world.end(&claimed, End::Completed).await;
        last = Some(claimed.head.run);
    }
    let session = record(&world).await;
    assert_eq!((session.active, session.waiting, session.last), (None, vec![], last));
    assert_eq!((session.graph.as_str(), session.runs), ("mailer", 3));
}

/// The head keeps its session through parking, rescheduling, release and a lost worker.
pub async fn active_run_stays_active(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&session_run("r1", IfBusy::Enqueue)).await;
    world.created(&session_run("r2", IfBusy::Enqueue)).await;
    let active = Some(id("r1"));

    let claimed = world.claim_next().await;
    assert!(world.release(&claimed.lease).await.unwrap());
    assert_eq!(record(&world).await.active, active);
    let claimed = world.claim_next().await;
    assert_eq!(claimed.head.run.as_str(), "r1", "released, it is still the head");

    assert_eq!(world.lost(&id("w1"), "gone", &[0]).await.unwrap().len(), 1);
    let claimed_again = world.claim_next().await;
    assert_eq!(claimed_again.head.run, claimed.head.run);

    let until_ms = world.now_ms().await.unwrap() + HOUR_MS;
    let request = world.draft(&claimed_again, 1, Disposition::Reschedule { until_ms });
    world.done(&request).await;
    assert!(world.claim_up_to(5).await.is_empty(), "the others wait behind a rescheduled run");
    assert_eq!(record(&world).await.active, active);
    world.start_now(&claimed.head.run).await.unwrap();

    let claimed = world.claim_next().await;
    let request = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    assert_eq!(world.done(&request).await.0, RunStatus::Parked);
    assert!(world.claim_up_to(5).await.is_empty(), "the others wait behind a parked run");
    let session = record(&world).await;
    assert_eq!((session.active, names(session.waiting)), (active, vec!["r2".to_owned()]));
}

/// `reject` names the active run and the question it is parked at.
pub async fn busy_session_rejects(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&session_run("r1", IfBusy::Reject)).await;
    let next = session_run("r2", IfBusy::Reject);
    let said = world.create(&next).await;
    assert_eq!(said, Enqueued::SessionBusy { run: run.clone(), question: None });

    let claimed = world.claim_next().await;
    let park = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    world.done(&crate::CommitRequest { opened: vec![question("q1", None)], ..park }).await;
    let said = world.create(&next).await;
    assert_eq!(said, Enqueued::SessionBusy { run: run.clone(), question: Some(id("q1")) });
    assert!(world.head(&next.run).await.unwrap().is_none());

    let request = world.append_now(&run).await;
    world.append(&request, &AppendKind::Cancel { rollback: false }).await.unwrap();
    world.created(&next).await;
}

/// `interrupt` and `rollback` put a wish on the active run, never on the waiting ones. The first
/// wish stays, but for a rollback that wins over an interrupt.
pub async fn newer_run_cancels_the_active_one(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let active = world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let claimed = world.claim_next().await;
    let waiting = world.created(&session_run("r2", IfBusy::Enqueue)).await;

    world.created(&session_run("r3", IfBusy::Interrupt)).await;
    assert_eq!(world.head_of(&active).await.cancel, Some(CancelWish::Interrupted));
    world.created(&session_run("r4", IfBusy::Rollback)).await;
    assert_eq!(world.head_of(&active).await.cancel, Some(CancelWish::RolledBack));
    world.created(&session_run("r5", IfBusy::Interrupt)).await;
    assert_eq!(world.head_of(&active).await.cancel, Some(CancelWish::RolledBack));
    assert_eq!(world.head_of(&waiting).await.cancel, None);

    let request = world.draft(&claimed, 1, Disposition::Continue);
    assert_eq!(world.commit(&request).await.unwrap(), CommitReply::Cancelled);
    world.end(&claimed, End::Cancelled).await;
    let session = record(&world).await;
    assert_eq!(session.last, None, "a run that was rolled back counts for nothing");
    assert_eq!(session.active, Some(waiting));
    assert_eq!(names(session.waiting), ["r3", "r4", "r5"]);
}

/// A run that was interrupted counts as the session's last, once it has begun: that pins it. One
/// that ended before is nothing to start from.
pub async fn interrupted_run_counts(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&session_run("r1", IfBusy::Enqueue)).await;
    for (next, has_begun) in [("r2", true), ("r3", false)] {
        let claimed = world.claim_next().await;
        world.created(&session_run(next, IfBusy::Interrupt)).await;
        let end = Disposition::Finish { end: End::Cancelled };
        let mut request = world.draft(&claimed, 1, end);
        request.pin = has_begun.then(|| Fingerprint::from_text("pinned"));
        world.commit(&request).await.unwrap();
        assert_eq!(record(&world).await.last, Some(id("r1")));
    }
    assert_eq!(world.claim_next().await.session_last, Some(id("r1")));
}

/// A wish that a person set is not weakened by a newer run.
pub async fn asked_wish_stays(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&session_run("r1", IfBusy::Enqueue)).await;
    world.claim_next().await;
    let request = world.append_now(&run).await;
    world.append(&request, &AppendKind::Cancel { rollback: false }).await.unwrap();
    world.created(&session_run("r2", IfBusy::Rollback)).await;
    assert_eq!(world.head_of(&run).await.cancel, Some(CancelWish::Asked));
}

/// A session belongs to the graph of its first run.
pub async fn session_keeps_its_graph(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let other = NewRun { graph: id("other"), ..session_run("r2", IfBusy::Enqueue) };
    let refused = Enqueued::SessionGraph { graph: id("mailer") };
    assert_eq!(world.create(&other).await, refused);
    let claimed = world.claim_next().await;
    world.end(&claimed, End::Completed).await;
    assert_eq!(world.create(&other).await, refused, "an idle session too");
}

/// A delayed first start keeps no place: it joins the order when it is due.
pub async fn delayed_start_joins_when_due(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let late = NewRun { start: When::In(HOUR_MS), ..session_run("late", IfBusy::Enqueue) };
    let late = world.created(&late).await;
    let session = record(&world).await;
    assert_eq!((session.active, session.waiting.len(), session.runs), (None, 0, 1));
    let first = world.created(&session_run("r1", IfBusy::Reject)).await;
    assert_eq!(record(&world).await.active, Some(first.clone()), "the session was free");

    assert_eq!(world.start_now(&late).await.unwrap(), Some(true));
    let session = record(&world).await;
    assert_eq!((session.active, names(session.waiting)), (Some(first), vec!["late".to_owned()]));
    let claimed = world.claim_next().await;
    assert_eq!(claimed.head.run.as_str(), "r1");
    world.end(&claimed, End::Completed).await;
    assert_eq!(world.claim_next().await.head.run, late);
}

/// Once its time has come, a delayed first start is claimed without any help.
pub async fn delayed_start_fires_in_a_session(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&NewRun { start: When::In(60), ..session_run("late", IfBusy::Enqueue) }).await;
    world.let_pass(60).await;
    let claimed = world.claim_next().await;
    assert_eq!(claimed.head.run.as_str(), "late");
    assert_eq!(record(&world).await.active, Some(claimed.head.run));
}

/// A cancelled run leaves the order wherever it stands.
pub async fn cancelled_run_leaves_the_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["r1", "r2", "r3"] {
        world.created(&session_run(name, IfBusy::Enqueue)).await;
    }
    let cancel = AppendKind::Cancel { rollback: true };
    world.append(&world.append_now(&id("r2")).await, &cancel).await.unwrap();
    assert_eq!(names(record(&world).await.waiting), ["r3"]);
    world.append(&world.append_now(&id("r1")).await, &cancel).await.unwrap();
    let session = record(&world).await;
    assert_eq!((session.active, session.waiting.len()), (Some(id("r3")), 0));
    assert_eq!(session.last, None, "both were rolled back");
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["r3"]);
}

/// A redriven run stands in line behind those that came meanwhile.
pub async fn redriven_run_waits_its_turn(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let first = world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let claimed = world.claim_next().await;
    world.created(&session_run("r2", IfBusy::Enqueue)).await;
    world.end(&claimed, End::Failed(ReasonCode::NodeError)).await;
    world.append(&world.append_now(&first).await, &AppendKind::Redrive).await.unwrap();
    let session = record(&world).await;
    assert_eq!((session.active, names(session.waiting)), (Some(id("r2")), names(["r1"])));
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["r2"]);
}

/// Sessions do not hinder each other, and runs without a session hinder nobody.
pub async fn sessions_are_apart(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&session_run("r1", IfBusy::Enqueue)).await;
    world.created(&session_run("r2", IfBusy::Enqueue)).await;
    world.created(&NewRun { session: Some(id("s2")), ..new_run("r3") }).await;
    world.created(&new_run("r4")).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 9)).await, ["r1", "r3", "r4"]);
}

/// A session is deleted with its runs, but not while one of them is open.
pub async fn deleted_session_is_gone(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let first = world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let session = id("s1");
    assert_eq!(world.delete_session(&session).await.unwrap(), Some(false), "it is queued");
    let claimed = world.claim_next().await;
    assert_eq!(world.delete_session(&session).await.unwrap(), Some(false), "it is running");
    world.end(&claimed, End::Completed).await;
    let late = NewRun { start: When::In(HOUR_MS), ..session_run("late", IfBusy::Enqueue) };
    let late = world.created(&late).await;
    assert_eq!(world.delete_session(&session).await.unwrap(), Some(false), "it is delayed");
    let cancel = AppendKind::Cancel { rollback: true };
    world.append(&world.append_now(&late).await, &cancel).await.unwrap();

    assert_eq!(world.delete_session(&session).await.unwrap(), Some(true));
    assert!(world.session(&session).await.unwrap().is_none());
    for run in [&first, &late] {
        assert!(world.head(run).await.unwrap().is_none());
        assert!(world.payload(run).await.unwrap().is_none());
        assert!(world.journal(run, 0, 10).await.unwrap().is_none());
    }
    let stats = world.stats().await.unwrap();
    assert!(stats.counts.iter().all(|(_, count)| *count == 0), "{:?}", stats.counts);
    let other = NewRun { graph: id("other"), ..session_run("r9", IfBusy::Enqueue) };
    world.created(&other).await;
}

async fn record(world: &World) -> SessionRecord {
    world.session(&id("s1")).await.unwrap().expect("the session exists")
}
