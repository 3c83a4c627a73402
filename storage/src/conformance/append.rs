//! Appends by whoever is not the owner: cancel, edit, redrive, migrate.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode, RunId, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, claim_request, id, lane, new_run, question, structure, to_gate},
};
use crate::{
    AppendKind, AppendReply, AppendRequest, CancelWish, ChainHash, ClaimRequest, CommitRequest,
    Disposition, Lane, NewRun, QuestionFilter, When,
};

const EDIT: AppendKind = AppendKind::Edit { shown: Vec::new() };
const CANCEL: AppendKind = AppendKind::Cancel { rollback: false };

/// A run that nobody has is cancelled at once, from every state in which it waits.
pub async fn cancel_ends_a_waiting_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let late = NewRun { start: When::In(HOUR_MS), ..new_run("scheduled") };
    world.created(&late).await;
    world.parked("parked", &[question("q1", Some("review"))]).await;
    world.answer(&id("parked"), to_gate("later"), "early").await;
    world.created(&new_run("queued")).await;
    for name in ["scheduled", "parked", "queued"] {
        let run: RunId = id(name);
        let before = world.head_of(&run).await;
        let request = world.append_on(&before);
        assert_eq!(append(&world, &request, &CANCEL).await, RunStatus::Cancelled, "{name}");
        let head = world.head_of(&run).await;
        assert_eq!((head.status(), head.seq), (RunStatus::Cancelled, before.seq + 1));
        assert_eq!(head.hash, request.hash);
        assert_eq!(head.tail_bytes, before.tail_bytes + request.record.len() as u64);
        assert_eq!(head.finished_at_ms, Some(head.updated_at_ms));
        assert_eq!(head.due_at_ms(), None);
        let records = world.journal(&run, before.seq, 9).await.unwrap().unwrap().records;
        assert_eq!(records, [request.record]);
        assert_eq!(world.inbox(&run).await.unwrap(), []);
        assert!(
            world.questions(&QuestionFilter::of_run(&run), None, 9).await.unwrap().rows.is_empty()
        );
    }
    assert!(world.claim_up_to(9).await.is_empty());
}

/// A run that a worker has is told; the second wish changes nothing; nothing is appended.
pub async fn cancel_tells_the_owner(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let request = world.append_on(&claimed.head);
    assert_eq!(world.append(&request, &CANCEL).await.unwrap(), AppendReply::Cancelling);
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.status(), head.seq), (RunStatus::Running, 0));
    assert_eq!(head.cancel, Some(CancelWish::Asked));
    assert_eq!(world.append(&request, &CANCEL).await.unwrap(), AppendReply::Cancelling);
    let other = world.append_on(&head);
    let rollback = AppendKind::Cancel { rollback: true };
    assert_eq!(world.append(&other, &rollback).await.unwrap(), AppendReply::Cancelling);
    assert_eq!(world.head_of(&id("r1")).await.cancel, Some(CancelWish::Asked));

    let claimed_too = world.running("r2").await;
    let request = world.append_on(&claimed_too.head);
    assert_eq!(world.append(&request, &rollback).await.unwrap(), AppendReply::Cancelling);
    assert_eq!(world.head_of(&id("r2")).await.cancel, Some(CancelWish::RolledBack));

    world.end(&claimed, End::Cancelled).await;
    let request = world.append_now(&id("r1")).await;
    assert_eq!(append(&world, &request, &CANCEL).await, RunStatus::Cancelled, "it is already");
    assert_eq!(world.head_of(&id("r1")).await.seq, 1, "and nothing more is written");
}

/// What has ended otherwise is not cancelled.
pub async fn ended_run_is_not_cancelled(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let ends = [
        (End::Completed, RunStatus::Completed),
        (End::Failed(ReasonCode::NodeError), RunStatus::Failed),
    ];
    for (number, (end, status)) in ends.into_iter().enumerate() {
        let run = world.ended(&format!("r{number}"), end).await;
        assert_wrong_state(&world, &run, &CANCEL, status).await;
    }
}

/// An append on another length or hash is told so and writes nothing.
pub async fn moved_journal_is_told(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.parked("r1", &[question("q1", None)]).await;
    let run: RunId = id("r1");
    let before = world.head_of(&run).await;
    let good = world.append_on(&before);
    for bad in [
        AppendRequest { from: 0, ..good.clone() },
        AppendRequest { from: 2, ..good.clone() },
        AppendRequest { previous: good.hash.clone(), ..good.clone() },
        AppendRequest { from: 0, previous: ChainHash::default(), ..good.clone() },
    ] {
        for kind in [&CANCEL, &EDIT] {
            assert_eq!(world.append(&bad, kind).await.unwrap(), AppendReply::Moved);
        }
    }
    assert_eq!(world.head_of(&run).await, before, "nothing was written");
    assert_eq!(append(&world, &good, &EDIT).await, RunStatus::Parked);
}

/// A repeat of an append is answered as done with the state of now, and writes nothing.
pub async fn repeated_append_has_one_effect(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.ended("r1", End::Failed(ReasonCode::NodeError)).await;
    let request = world.append_now(&run).await;
    assert_eq!(append(&world, &request, &AppendKind::Redrive).await, RunStatus::Queued);
    let after = world.head_of(&run).await;
    assert_eq!(append(&world, &request, &AppendKind::Redrive).await, RunStatus::Queued);
    assert_eq!(world.head_of(&run).await, after);
    world.claim_next().await;
    assert_eq!(append(&world, &request, &AppendKind::Redrive).await, RunStatus::Running);
    assert_eq!(world.head_of(&run).await.seq, 2);
}

/// No run, no append.
pub async fn unknown_run_is_not_found(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&new_run("r1")).await;
    let request = AppendRequest { run: id("unknown"), ..world.append_now(&run).await };
    let (from, to) = (structure("v1"), structure("v2"));
    for kind in [CANCEL, EDIT, AppendKind::Redrive, AppendKind::Migrate { from, to }] {
        assert_eq!(world.append(&request, &kind).await.unwrap(), AppendReply::NotFound);
    }
}

/// Only a parked run is edited, and it stays parked.
pub async fn only_parked_runs_are_edited(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let parked = world.parked("parked", &[question("q1", None)]).await.head.run;
    let request = world.append_now(&parked).await;
    assert_eq!(append(&world, &request, &EDIT).await, RunStatus::Parked);
    let head = world.head_of(&parked).await;
    assert_eq!((head.seq, &head.hash), (2, &request.hash));
    assert_eq!(
        world.questions(&QuestionFilter::of_run(&parked), None, 9).await.unwrap().rows.len(),
        1
    );

    let late = NewRun { start: When::In(HOUR_MS), ..new_run("late") };
    let late = world.created(&late).await;
    assert_wrong_state(&world, &late, &EDIT, RunStatus::Scheduled).await;
    let queued = world.created(&new_run("r1")).await;
    assert_wrong_state(&world, &queued, &EDIT, RunStatus::Queued).await;
    let claimed = world.claim_next().await;
    assert_wrong_state(&world, &queued, &EDIT, RunStatus::Running).await;
    world.end(&claimed, End::Completed).await;
    assert_wrong_state(&world, &queued, &EDIT, RunStatus::Completed).await;
}

/// A redriven run begins its counters anew and is claimed with others again.
pub async fn redrive_starts_counters_anew(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("r1")).await;
    let run: RunId = id("r1");
    for _ in 0..2 {
        world.claim_next().await;
        world.lost(&id("w1"), "gone", &[0]).await.unwrap();
    }
    let claimed = world.claim_next().await;
    let failed = Disposition::Finish { end: End::Failed(ReasonCode::CrashLoop) };
    world.done(&world.draft(&claimed, 0, failed)).await;
    let head = world.head_of(&run).await;
    assert_eq!((head.reason(), head.losses.len()), (Some(ReasonCode::CrashLoop), 2));

    let request = world.append_now(&run).await;
    assert_eq!(append(&world, &request, &AppendKind::Redrive).await, RunStatus::Queued);
    let head = world.head_of(&run).await;
    assert_eq!((head.lost_in_row, head.lost_in_life, head.losses.len()), (0, 0, 0));
    assert_eq!((head.finished_at_ms, head.reason(), head.seq), (None, None, 1));
    world.created(&new_run("r2")).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["r1", "r2"]);
}

/// Only a failed run is redriven.
pub async fn only_failed_runs_are_redriven(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let completed = world.ended("done", End::Completed).await;
    assert_wrong_state(&world, &completed, &AppendKind::Redrive, RunStatus::Completed).await;
    let cancelled = world.ended("cancelled", End::Cancelled).await;
    assert_wrong_state(&world, &cancelled, &AppendKind::Redrive, RunStatus::Cancelled).await;
    let parked = world.parked("parked", &[]).await.head.run;
    assert_wrong_state(&world, &parked, &AppendKind::Redrive, RunStatus::Parked).await;
    let queued = world.created(&new_run("r1")).await;
    assert_wrong_state(&world, &queued, &AppendKind::Redrive, RunStatus::Queued).await;
    world.claim_next().await;
    assert_wrong_state(&world, &queued, &AppendKind::Redrive, RunStatus::Running).await;
}

/// A migration moves a waiting run to the lane of another structure.
pub async fn migrate_moves_the_lane(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let (from, to) = (structure("v1"), structure("v2"));
    let kind = AppendKind::Migrate { from: from.clone(), to: to.clone() };
    let pinned = |name: &str| NewRun { fingerprint: Some(from.clone()), ..new_run(name) };
    let queued = world.created(&pinned("queued")).await;
    let late = NewRun { start: When::In(HOUR_MS), ..pinned("late") };
    let late = world.created(&late).await;
    let parked = world.running("parked").await;
    let draft = world.draft(&parked, 1, Disposition::Park { wake_at_ms: None });
    world.done(&CommitRequest { pin: Some(from.clone()), ..draft }).await;
    let parked = parked.head.run;

    let states = [RunStatus::Queued, RunStatus::Scheduled, RunStatus::Parked];
    for (run, status) in [&queued, &late, &parked].into_iter().zip(states) {
        let request = world.append_now(run).await;
        assert_eq!(append(&world, &request, &kind).await, status, "the state stays");
        assert_eq!(world.head_of(run).await.fingerprint, Some(to.clone()));
        assert_wrong_state(&world, run, &kind, status).await;
    }
    let old = vec![Lane { fingerprint: Some(from.clone()), ..lane() }];
    let request = ClaimRequest { lanes: old, ..claim_request("w1", 9) };
    assert!(world.claimed_ids(&request).await.is_empty());
    world.start_now(&late).await.unwrap();
    let new = vec![Lane { fingerprint: Some(to), ..lane() }];
    let request = ClaimRequest { lanes: new, ..claim_request("w1", 9) };
    assert_eq!(world.claimed_ids(&request).await, ["queued", "late"]);
    assert_wrong_state(&world, &queued, &kind, RunStatus::Running).await;
}

/// A run that is pinned to nothing, or has ended, is not migrated.
pub async fn unpinned_run_is_not_migrated(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let kind = AppendKind::Migrate { from: structure("v1"), to: structure("v2") };
    let run = world.created(&new_run("r1")).await;
    assert_wrong_state(&world, &run, &kind, RunStatus::Queued).await;
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Finish { end: End::Completed });
    world.done(&CommitRequest { pin: Some(structure("v1")), ..draft }).await;
    assert_wrong_state(&world, &run, &kind, RunStatus::Completed).await;
}

async fn append(world: &World, request: &AppendRequest, kind: &AppendKind) -> RunStatus {
    let reply = world.append(request, kind).await.unwrap();
    let AppendReply::Done { status, .. } = reply else {
        panic!("{kind:?} of {} was not done: {reply:?}", request.run)
    };
    status
}

/// Refused for the state `expected`, and nothing is written.
async fn assert_wrong_state(world: &World, run: &RunId, kind: &AppendKind, expected: RunStatus) {
    let before = world.head_of(run).await;
    let said = world.append(&world.append_on(&before), kind).await.unwrap();
    assert_eq!(said, AppendReply::WrongState { status: expected });
    assert_eq!(world.head_of(run).await, before);
}
