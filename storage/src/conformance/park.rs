//! Parking: questions open and close, answers race with the park, timers wake.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{Life, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, id, question, to_gate, to_interrupt},
};
use crate::{
    ClaimedRun, CommitRequest, Disposition, InboxEntry, OpenedInterrupt, QuestionFilter,
    SignalReply,
};

/// A parked run holds nothing, is claimed by nobody, and shows its questions.
pub async fn parked_run_waits(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.parked("r1", &[question("q1", Some("review"))]).await;
    let run = claimed.head.run;
    let head = world.head_of(&run).await;
    assert_eq!((head.status(), head.due_at_ms()), (RunStatus::Parked, None));
    assert_eq!((head.lost_in_row, head.lost_in_life), (0, 0), "the claim ended in order");
    assert!(world.claim_up_to(5).await.is_empty());
    assert!(!world.release(&claimed.lease).await.unwrap(), "the lease is over");
    let rows = world.questions(&QuestionFilter::of_run(&run), None, 9).await.unwrap().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].interrupt, id("q1"));
    assert_eq!(rows[0].body, question("q1", None).body);
    assert_eq!(rows[0].head, head);
    assert_eq!(rows[0].opened_at_ms, head.updated_at_ms);
}

/// An answer wakes a parked run; the next owner finds it in its inbox, and takes it once.
pub async fn answer_wakes_and_is_taken_once(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let parked = world.parked("r1", &[question("q1", None)]).await;
    let run = parked.head.run;
    let said = world.answer(&run, to_interrupt("q1"), "yes").await;
    assert!(matches!(said, SignalReply::Delivered { .. }), "{said:?}");
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
    let yes = InboxEntry { key: "iq1".to_owned(), record: b"yes".to_vec() };
    assert_eq!(world.inbox(&run).await.unwrap(), std::slice::from_ref(&yes));

    let claimed = world.claim_next().await;
    assert_eq!(claimed.inbox, std::slice::from_ref(&yes));
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let consumed = vec![yes.key.clone()];
    let taking = CommitRequest { consumed, closed: vec![id("q1")], ..draft };
    assert_eq!(world.done(&taking).await, (RunStatus::Running, vec![]));
    assert_eq!(world.inbox(&run).await.unwrap(), []);
    assert!(world.questions(&QuestionFilter::of_run(&run), None, 9).await.unwrap().rows.is_empty());
    let late = world.answer(&run, to_interrupt("q1"), "no").await;
    assert_eq!(late, SignalReply::NotOpen, "an answer to a closed question is refused");
}

/// An answer that came before the park keeps the run running: nothing is lost between the two.
pub async fn answer_before_park_is_seen(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let opened = vec![question("q1", None), question("q2", None)];
    world.done(&CommitRequest { opened, ..draft }).await;
    world.answer(&run, to_interrupt("q2"), "yes").await;
    assert_eq!(world.status_of(&run).await, RunStatus::Running, "a running run goes on");

    let head = world.head_of(&run).await;
    let park = world.draft_on(&claimed.lease, &head, 1, Disposition::Park { wake_at_ms: None });
    let entry = InboxEntry { key: "iq2".to_owned(), record: b"yes".to_vec() };
    assert_eq!(world.done(&park).await, (RunStatus::Running, vec![entry]));
    let head = world.head_of(&run).await;
    assert_eq!((head.status(), head.seq), (RunStatus::Running, 2), "the records are written");
    let Life::Running { lease } = &head.life else { panic!("{:?}", head.life) };
    assert_eq!(lease.pair, claimed.lease.pair);

    let draft = world.draft_on(&claimed.lease, &head, 1, Disposition::Park { wake_at_ms: None });
    let (consumed, closed) = (vec!["iq2".to_owned()], vec![id("q2")]);
    let park = CommitRequest { consumed, closed, ..draft };
    assert_eq!(world.done(&park).await, (RunStatus::Parked, vec![]), "now nothing answers it");
}

/// An answer that was sent to a gate before it opened is seen by the park that opens it.
pub async fn early_gate_answer_is_seen(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let said = world.answer(&run, to_gate("review"), "yes").await;
    assert!(matches!(said, SignalReply::Kept { .. }), "{said:?}");
    let entry = InboxEntry { key: "greview".to_owned(), record: b"yes".to_vec() };
    assert_eq!(park(&world, &claimed, question("q1", Some("review"))).await.1, [entry]);
    assert_eq!(world.status_of(&run).await, RunStatus::Running);
}

/// An early answer to another gate does not keep the run from parking, and stays.
pub async fn foreign_gate_answer_waits(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    world.answer(&run, to_gate("publish"), "yes").await;
    let entry = InboxEntry { key: "gpublish".to_owned(), record: b"yes".to_vec() };
    let (status, inbox) = park(&world, &claimed, question("q1", Some("review"))).await;
    assert_eq!((status, inbox), (RunStatus::Parked, vec![entry.clone()]));
    assert_eq!(world.inbox(&run).await.unwrap(), [entry]);
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
}

/// An answer that the same commit consumes does not keep the run from parking.
pub async fn consumed_answer_does_not_count(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    world.answer(&run, to_gate("review"), "yes").await;
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    let opened = vec![question("q1", Some("review"))];
    let consumed = vec!["greview".to_owned()];
    let request = CommitRequest { opened, consumed, ..draft };
    assert_eq!(world.done(&request).await, (RunStatus::Parked, vec![]));
}

/// A parked run with a timer wakes by itself, not before its time.
pub async fn wake_timer_wakes(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let wake_at_ms = world.now_ms().await.unwrap() + 150;
    let park = Disposition::Park { wake_at_ms: Some(wake_at_ms) };
    let opened = vec![question("q1", None)];
    let request = CommitRequest { opened, ..world.draft(&claimed, 1, park) };
    assert_eq!(world.done(&request).await.0, RunStatus::Parked);
    assert_eq!(world.head_of(&run).await.due_at_ms(), Some(wake_at_ms));

    let mut claimed = world.claim_up_to(1).await;
    while claimed.is_empty() {
        super::world::look_again().await;
        claimed = world.claim_up_to(1).await;
    }
    assert!(claimed[0].head.updated_at_ms >= wake_at_ms, "not early");
    assert_eq!(
        world.questions(&QuestionFilter::of_run(&run), None, 9).await.unwrap().rows.len(),
        1
    );
}

/// A claim that finds nothing names the nearest timer, be it of a scheduled or of a parked run.
pub async fn next_due_is_the_nearest_timer(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let now_ms = world.now_ms().await.unwrap();
    let wake_at_ms = Some(now_ms + HOUR_MS);
    let request = world.draft(&claimed, 1, Disposition::Park { wake_at_ms });
    world.done(&request).await;
    let claimed = world.running("r2").await;
    let until_ms = now_ms + 2 * HOUR_MS;
    let request = world.draft(&claimed, 1, Disposition::Reschedule { until_ms });
    world.done(&request).await;
    let claims = world.claim(&super::world::claim_request("w1", 1)).await.unwrap();
    assert_eq!((claims.runs.len(), claims.next_due_ms), (0, wake_at_ms));
}

/// A timer that has come already makes the run claimable instead of parking it.
pub async fn past_wake_timer_queues(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let request = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: Some(1_000) });
    assert_eq!(world.done(&request).await.0, RunStatus::Queued);
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.status(), head.lost_in_row, head.lost_in_life), (RunStatus::Queued, 0, 0));
    assert_eq!(world.claim_next().await.head.run.as_str(), "r1");
}

/// An answer wakes a run with a timer, and the timer is gone with the park.
pub async fn answer_beats_the_timer(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let wake_at_ms = Some(world.now_ms().await.unwrap() + HOUR_MS);
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms });
    let opened = vec![question("q1", None)];
    world.done(&CommitRequest { opened, ..draft }).await;
    world.answer(&id("r1"), to_interrupt("q1"), "yes").await;
    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.status(), head.due_at_ms()), (RunStatus::Queued, None));
    let claims = world.claim(&super::world::claim_request("w1", 5)).await.unwrap();
    assert_eq!(claims.runs.len(), 1);
    assert_eq!(world.claim(&super::world::claim_request("w1", 5)).await.unwrap().next_due_ms, None);
}

/// Answers and parks that happen at the same time never leave a run parked with its answer.
pub async fn no_answer_is_lost_in_a_race(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for round in 0..20 {
        let claimed = world.running(&format!("r{round}")).await;
        let run = claimed.head.run.clone();
        let draft = world.draft(&claimed, 1, Disposition::Continue);
        world.done(&CommitRequest { opened: vec![question("q1", None)], ..draft }).await;
        let head = world.head_of(&run).await;
        let wake_at_ms = None;
        let request = world.draft_on(&claimed.lease, &head, 1, Disposition::Park { wake_at_ms });
        let (store, answered) = (world.store.clone(), run.clone());
        let answering = tokio::spawn(async move {
            let request = super::world::signal_request(&answered, to_interrupt("q1"), "yes");
            store.signal(&request).await.unwrap()
        });
        let (status, _) = world.done(&request).await;
        let said = answering.await.unwrap();
        assert!(matches!(said, SignalReply::Delivered { .. }), "{said:?}");
        let after = world.status_of(&run).await;
        let expected = if status == RunStatus::Running { status } else { RunStatus::Queued };
        assert_eq!(after, expected, "round {round}");
        assert_eq!(world.inbox(&run).await.unwrap().len(), 1);
        if after == RunStatus::Queued {
            world.claim_next().await;
        }
    }
}

async fn park(
    world: &World,
    claimed: &ClaimedRun,
    opened: OpenedInterrupt,
) -> (RunStatus, Vec<InboxEntry>) {
    let draft = world.draft(claimed, 1, Disposition::Park { wake_at_ms: None });
    world.done(&CommitRequest { opened: vec![opened], ..draft }).await
}
