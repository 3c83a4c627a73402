//! Commits: records, snapshots, counters and ends, in one step or not at all.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode, RunId, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, id, names, new_run, question, to_gate, to_interrupt},
};
use crate::{
    AppendKind, Chain, ChainHash, CommitReply, CommitRequest, Disposition, QuestionFilter, RunHead,
    StoreError,
};

/// Records are appended in order, numbered without a gap, and chained.
pub async fn commit_appends_records(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let first = world.draft(&claimed, 3, Disposition::Continue);
    assert_eq!(world.done(&first).await, (RunStatus::Running, vec![]));
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.seq, &head.hash), (3, &first.hash));
    let bytes: usize = first.records.iter().map(Vec::len).sum();
    assert_eq!(head.tail_bytes, bytes as u64);

    let second = world.draft_on(&claimed.lease, &head, 2, Disposition::Continue);
    world.done(&second).await;
    let part = world.journal(&id("r1"), 0, 100).await.unwrap().unwrap();
    assert_eq!(part.records, [first.records.clone(), second.records.clone()].concat());
    assert_eq!((part.from, part.head.seq, &part.head.hash), (0, 5, &second.hash));
    let mut chain = Chain::start(world.namespace(), &id("r1"));
    for (number, record) in part.records.iter().enumerate() {
        assert_eq!(chain.decode(record).unwrap().seq, number as u64);
    }
    assert_eq!(chain.hash(), second.hash);
}

/// The journal is read from any number on, at most so many records.
pub async fn journal_is_read_in_parts(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let request = world.draft(&claimed, 5, Disposition::Continue);
    world.done(&request).await;
    let read = async |from, max| world.journal(&id("r1"), from, max).await.unwrap().unwrap();
    let part = read(2, 2).await;
    assert_eq!((part.from, &part.records[..]), (2, &request.records[2..4]));
    assert_eq!(read(4, 9).await.records, request.records[4..]);
    assert!(read(5, 9).await.records.is_empty());
    assert!(read(50, 9).await.records.is_empty());
    assert!(read(0, 0).await.records.is_empty());
}

/// Any bytes are a record, and come back as they were.
pub async fn records_are_opaque(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let records = vec![vec![1], vec![0, 13, 10, 255, 0], vec![255; 70_000]];
    let request = CommitRequest { records, snapshot: Some(vec![0, 255]), ..draft };
    world.done(&request).await;
    let part = world.journal(&id("r1"), 0, 9).await.unwrap().unwrap();
    assert_eq!(part.records, request.records);
    assert_eq!(world.checkpoint(&id("r1")).await.unwrap().unwrap().snapshot, request.snapshot);
}

/// A snapshot covers everything up to it; a checkpoint is the newest one and what follows.
pub async fn snapshot_covers_the_records(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let part = world.checkpoint(&id("r1")).await.unwrap().unwrap();
    assert_eq!((part.snapshot, part.from, part.records.len()), (None, 0, 0));

    let first = world.draft(&claimed, 2, Disposition::Continue);
    world.done(&first).await;
    let part = world.checkpoint(&id("r1")).await.unwrap().unwrap();
    assert_eq!((part.snapshot, part.from, part.records), (None, 0, first.records.clone()));

    let second = world.draft_on(&claimed.lease, &part.head, 2, Disposition::Continue);
    world.done(&CommitRequest { snapshot: Some(b"s4".to_vec()), ..second.clone() }).await;
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.seq, head.snapshot_seq, head.tail_bytes), (4, 4, 0));
    let third = world.draft_on(&claimed.lease, &head, 1, Disposition::Continue);
    world.done(&third).await;
    let part = world.checkpoint(&id("r1")).await.unwrap().unwrap();
    assert_eq!((part.snapshot, part.from), (Some(b"s4".to_vec()), 4));
    assert_eq!(part.records, third.records);
    assert_eq!((part.head.seq, part.head.snapshot_seq), (5, 4));
    let all = world.journal(&id("r1"), 0, 9).await.unwrap().unwrap().records;
    assert_eq!(all, [first.records, second.records, third.records].concat(), "all are kept");
}

/// A commit on another length or hash than the stored one writes nothing.
pub async fn wrong_place_is_refused(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    world.done(&world.draft(&claimed, 2, Disposition::Continue)).await;
    let head = world.head_of(&id("r1")).await;
    let good =
        world.draft_on(&claimed.lease, &head, 1, Disposition::Finish { end: End::Completed });
    let refused = CommitReply::Sequence { seq: 2 };
    for bad in [
        CommitRequest { from: 1, ..good.clone() },
        CommitRequest { from: 3, ..good.clone() },
        CommitRequest { previous: good.hash.clone(), ..good.clone() },
        CommitRequest { previous: ChainHash::default(), ..good.clone() },
        CommitRequest { from: 0, previous: ChainHash::default(), ..good.clone() },
    ] {
        assert_eq!(world.commit(&bad).await.unwrap(), refused);
        assert_eq!(world.head_of(&id("r1")).await, head, "nothing was written");
    }
    world.done(&good).await;
}

/// Of commits that race for one number, one is written and the others are told.
pub async fn racing_commits_take_one_number(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let send = |_| {
        let store = world.store.clone();
        let request = world.draft(&claimed, 1, Disposition::Continue);
        tokio::spawn(async move { store.commit(&request).await.unwrap() })
    };
    let mut done = 0;
    for sending in (0..8).map(send).collect::<Vec<_>>() {
        match sending.await.unwrap() {
            CommitReply::Done { .. } => done += 1,
            CommitReply::Sequence { seq } => assert_eq!(seq, 1),
            other @ (CommitReply::Fenced | CommitReply::Cancelled) => panic!("{other:?}"),
        }
    }
    assert_eq!((done, world.head_of(&id("r1")).await.seq), (1, 1));
}

/// A repeat of a commit is answered as done and writes nothing, whatever the state is by now.
pub async fn repeated_commit_has_one_effect(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let first = world.draft(&claimed, 2, Disposition::Continue);
    world.done(&first).await;
    let head = world.head_of(&id("r1")).await;
    assert_eq!(world.done(&first).await.0, RunStatus::Running);

    let back = Disposition::Reschedule { until_ms: 0 };
    let second = world.draft_on(&claimed.lease, &head, 1, back);
    assert_eq!(world.done(&second).await.0, RunStatus::Queued);
    let after = world.head_of(&id("r1")).await;
    assert_eq!(world.done(&second).await.0, RunStatus::Queued);
    assert_eq!(world.done(&first).await.0, RunStatus::Queued, "also an older one");
    assert_eq!(world.head_of(&id("r1")).await, after, "nothing was written");

    let again = world.claim_next().await;
    assert_eq!(world.done(&second).await.0, RunStatus::Running, "whoever has it now");
    let finish = world.draft(&again, 1, Disposition::Finish { end: End::Completed });
    assert_eq!(world.done(&finish).await.0, RunStatus::Completed);
    assert_eq!(world.done(&finish).await.0, RunStatus::Completed);
    assert_eq!(world.journal(&id("r1"), 0, 9).await.unwrap().unwrap().records.len(), 4);
}

/// A run remembers its last eight requests.
pub async fn eight_requests_are_known(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let mut requests = Vec::new();
    for _ in 0..8 {
        let head = world.head_of(&id("r1")).await;
        let request = world.draft_on(&claimed.lease, &head, 1, Disposition::Continue);
        world.done(&request).await;
        requests.push(request);
    }
    for request in &requests {
        world.done(request).await;
    }
    assert_eq!(world.head_of(&id("r1")).await.seq, 8);
}

/// Once a cancel is wished, the only commit that is taken ends the run as cancelled.
pub async fn cancelled_run_only_ends(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let cancel = AppendKind::Cancel { rollback: false };
    world.append(&world.append_on(&claimed.head), &cancel).await.unwrap();
    let before = world.head_of(&id("r1")).await;
    for disposition in [
        Disposition::Continue,
        Disposition::Park { wake_at_ms: None },
        Disposition::Reschedule { until_ms: 0 },
        Disposition::Finish { end: End::Completed },
        Disposition::Finish { end: End::Failed(ReasonCode::NodeError) },
    ] {
        let request = world.draft(&claimed, 1, disposition);
        assert_eq!(world.commit(&request).await.unwrap(), CommitReply::Cancelled);
        assert_eq!(world.head_of(&id("r1")).await, before, "nothing was written");
    }
    world.end(&claimed, End::Cancelled).await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Cancelled);
}

/// The refusals have an order: repeat, fenced, sequence, cancelled.
pub async fn refusals_have_an_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let first = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&first).await;
    let cancel = AppendKind::Cancel { rollback: false };
    world.append(&world.append_now(&id("r1")).await, &cancel).await.unwrap();
    world.done(&first).await;
    let wrong_place = world.draft(&claimed, 1, Disposition::Continue);
    let said = world.commit(&wrong_place).await.unwrap();
    assert_eq!(said, CommitReply::Sequence { seq: 1 }, "before cancelled");
    assert!(world.release(&claimed.lease).await.unwrap());
    let said = world.commit(&wrong_place).await.unwrap();
    assert_eq!(said, CommitReply::Fenced, "before sequence");
    world.done(&first).await;
}

/// A commit to a run that is not there is an error, not a reply.
pub async fn missing_run_is_corrupt(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let mut request = world.draft(&claimed, 1, Disposition::Continue);
    request.lease.run = id("unknown");
    let error = world.commit(&request).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

/// A commit that goes on is a renewal.
pub async fn commit_renews_the_lease(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let draft = world.draft(&claimed, 0, Disposition::Continue);
    let request = CommitRequest { lease_ms: 5 * HOUR_MS, ..draft };
    world.done(&request).await;
    let head = world.head_of(&id("r1")).await;
    let end_ms = lease_end_ms(&head);
    assert!(end_ms >= claimed.head.updated_at_ms + 5 * HOUR_MS);
    assert_eq!((head.seq, &head.hash), (0, &ChainHash::default()), "no record, no number");
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { lease_ms: 0, ..draft }).await;
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.seq, lease_end_ms(&head)), (1, end_ms), "it may leave the lease as it is");
}

fn lease_end_ms(head: &RunHead) -> i64 {
    let holdpoint_graph::Life::Running { lease } = &head.life else { panic!("{:?}", head.life) };
    lease.deadline_ms
}

/// Every way to end is kept with its reason and its time, and takes questions and answers along.
pub async fn finish_ends_the_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let ends = [
        ("done", End::Completed, RunStatus::Completed),
        ("failed", End::Failed(ReasonCode::StepLimit), RunStatus::Failed),
        ("cancelled", End::Cancelled, RunStatus::Cancelled),
    ];
    for (name, end, status) in ends {
        let claimed = world.running(name).await;
        let opened = vec![question("q1", Some("review")), question("q2", None)];
        let draft = world.draft(&claimed, 1, Disposition::Continue);
        world.done(&CommitRequest { opened, ..draft }).await;
        let run = claimed.head.run.clone();
        world.answer(&run, to_interrupt("q1"), "yes").await;
        world.answer(&run, to_gate("later"), "yes").await;

        let head = world.head_of(&run).await;
        let request = world.draft_on(&claimed.lease, &head, 1, Disposition::Finish { end });
        assert_eq!(world.done(&request).await, (status, vec![]));
        let head = world.head_of(&run).await;
        assert_eq!((head.status(), head.seq), (status, 2));
        assert_eq!(head.finished_at_ms, Some(head.updated_at_ms));
        assert_eq!((head.lost_in_row, head.lost_in_life), (0, 0));
        assert_eq!(world.inbox(&run).await.unwrap(), []);
        assert!(
            world.questions(&QuestionFilter::of_run(&run), None, 9).await.unwrap().rows.is_empty()
        );
        assert!(world.claim_up_to(9).await.is_empty());
    }
    assert_eq!(world.head_of(&id("failed")).await.reason(), Some(ReasonCode::StepLimit));
}

/// Progress makes the running claim the first of its row; an orderly end of it clears the row.
/// Lost workers over a life are never forgotten by progress.
pub async fn progress_clears_the_row(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("r1")).await;
    let run: RunId = id("r1");
    for _ in 0..2 {
        world.claim_next().await;
        assert_eq!(names(world.lost(&id("w1"), "gone", &[0]).await.unwrap()), ["r1"]);
    }
    let claimed = world.claim_next().await;
    assert_eq!((claimed.head.lost_in_row, claimed.head.lost_in_life), (3, 3));
    assert_eq!(claimed.head.losses.len(), 2);

    world.done(&world.draft(&claimed, 0, Disposition::Continue)).await;
    let head = world.head_of(&run).await;
    assert_eq!((head.lost_in_row, head.losses.len()), (3, 2), "no progress, no record");
    world.done(&world.draft_on(&claimed.lease, &head, 1, Disposition::Continue)).await;
    let head = world.head_of(&run).await;
    assert_eq!((head.lost_in_row, head.losses.len()), (3, 0), "a record holds the losses");
    let draft = world.draft_on(&claimed.lease, &head, 1, Disposition::Continue);
    world.done(&CommitRequest { is_progress: true, ..draft }).await;
    let head = world.head_of(&run).await;
    assert_eq!((head.lost_in_row, head.lost_in_life), (1, 3));
    let back = Disposition::Reschedule { until_ms: 0 };
    world.done(&world.draft_on(&claimed.lease, &head, 1, back)).await;
    let head = world.head_of(&run).await;
    assert_eq!((head.lost_in_row, head.lost_in_life), (0, 2));
}

/// A time that has come makes a rescheduled run claimable at once, a later one scheduled.
pub async fn reschedule_waits_for_its_time(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let until_ms = world.now_ms().await.unwrap() + HOUR_MS;
    let request = world.draft(&claimed, 1, Disposition::Reschedule { until_ms });
    assert_eq!(world.done(&request).await.0, RunStatus::Scheduled);
    assert_eq!(world.head_of(&id("r1")).await.due_at_ms(), Some(until_ms));
    assert!(world.claim_up_to(1).await.is_empty());
    assert_eq!(world.start_now(&id("r1")).await.unwrap(), Some(true));

    let claimed = world.claim_next().await;
    let past = world.now_ms().await.unwrap() - 5_000;
    let request = world.draft(&claimed, 1, Disposition::Reschedule { until_ms: past });
    assert_eq!(world.done(&request).await.0, RunStatus::Queued);
    assert_eq!(world.claim_next().await.head.run.as_str(), "r1");
}
