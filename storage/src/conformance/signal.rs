//! Signals: each answer goes to its own question, once, and is refused with the right words.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode, RunId, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, id, names, new_run, question, signal_request, to_gate, to_interrupt},
};
use crate::{Address, CommitRequest, Disposition, NewRun, SignalReply, SignalRequest, When};

/// The reply to a delivered answer names the question, whichever way it was addressed.
pub async fn every_address_finds_the_question(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let addresses = [to_interrupt("q1"), to_gate("review"), Address::Only];
    for (number, address) in addresses.into_iter().enumerate() {
        let name = format!("r{number}");
        let run = world.parked(&name, &[question("q1", Some("review"))]).await.head.run;
        assert_delivered(&world.answer(&run, address, "yes").await, "q1");
        assert_eq!(world.status_of(&run).await, RunStatus::Queued);
        assert_eq!(keys(&world, &run).await, ["iq1"]);
        world.claim_next().await;
    }
}

/// A run that is not there, and one that has ended, take no answer.
pub async fn ended_run_takes_no_answer(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let unknown: RunId = id("unknown");
    assert_eq!(world.answer(&unknown, Address::Only, "yes").await, SignalReply::NotFound);
    let ends = [
        (End::Completed, RunStatus::Completed),
        (End::Failed(ReasonCode::NodeError), RunStatus::Failed),
        (End::Cancelled, RunStatus::Cancelled),
    ];
    for (number, (end, status)) in ends.into_iter().enumerate() {
        let run = world.ended(&format!("r{number}"), end).await;
        for address in [to_interrupt("q1"), to_gate("review"), Address::Only] {
            let said = world.answer(&run, address, "yes").await;
            assert_eq!(said, SignalReply::Final { status });
        }
        assert_eq!(world.inbox(&run).await.unwrap(), []);
    }
}

/// A question that is not open is named so; with no question at all there is nothing to answer.
pub async fn unknown_question_is_refused(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.running("r1").await.head.run;
    assert_eq!(world.answer(&run, to_interrupt("q1"), "yes").await, SignalReply::NotOpen);
    assert_eq!(world.answer(&run, Address::Only, "yes").await, SignalReply::NoQuestion);
    let run = world.parked("r2", &[question("q1", None)]).await.head.run;
    assert_eq!(world.answer(&run, to_interrupt("q2"), "yes").await, SignalReply::NotOpen);
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
    assert_eq!(world.inbox(&run).await.unwrap(), []);
}

/// Where several questions fit, the answer is refused with their ids, oldest first.
pub async fn several_questions_are_ambiguous(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { opened: vec![question("z", Some("review"))], ..draft }).await;
    world.let_pass(1).await;
    let head = world.head_of(&run).await;
    let park = Disposition::Park { wake_at_ms: None };
    let draft = world.draft_on(&claimed.lease, &head, 1, park);
    let opened = vec![question("b", Some("review")), question("a", None)];
    world.done(&CommitRequest { opened, ..draft }).await;

    let open = |ids: &[&str]| SignalReply::Ambiguous { open: ids.iter().map(|q| id(q)).collect() };
    assert_eq!(world.answer(&run, Address::Only, "yes").await, open(&["z", "a", "b"]));
    assert_eq!(world.answer(&run, to_gate("review"), "yes").await, open(&["z", "b"]));
    assert_eq!(world.inbox(&run).await.unwrap(), [], "nothing is kept of a refused answer");
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
    assert_delivered(&world.answer(&run, to_interrupt("b"), "yes").await, "b");
}

/// An answer to other arguments than those that are asked about is refused with the newer hash.
pub async fn changed_arguments_are_refused(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.parked("r1", &[question("q1", Some("review"))]).await.head.run;
    for address in [to_interrupt("q1"), to_gate("review"), Address::Only] {
        let request = signal_request(&run, address, "yes");
        let stale = SignalRequest { args_hash: Some("old".to_owned()), ..request };
        let refused = SignalReply::ArgsChanged { args_hash: "args-of-q1".to_owned() };
        assert_eq!(world.signal(&stale).await.unwrap(), refused);
    }
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
    let request = signal_request(&run, to_interrupt("q1"), "yes");
    let good = SignalRequest { args_hash: Some("args-of-q1".to_owned()), ..request };
    assert_delivered(&world.signal(&good).await.unwrap(), "q1");
}

/// The first answer wins; a repeat of its request is answered as before, another is told of it.
pub async fn first_answer_wins(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.parked("r1", &[question("q1", Some("review"))]).await.head.run;
    let first = signal_request(&run, to_interrupt("q1"), "yes");
    assert_delivered(&world.signal(&first).await.unwrap(), "q1");
    assert_delivered(&world.signal(&first).await.unwrap(), "q1");
    let by_gate = SignalRequest { address: to_gate("review"), ..first.clone() };
    assert_delivered(&world.signal(&by_gate).await.unwrap(), "q1");
    let decided = SignalReply::Decided { record: b"yes".to_vec() };
    for address in [to_interrupt("q1"), to_gate("review"), Address::Only] {
        assert_eq!(world.answer(&run, address, "no").await, decided);
    }
    assert_eq!(world.inbox(&run).await.unwrap()[0].record, b"yes");

    let claimed = world.claim_next().await;
    assert_eq!(world.answer(&run, to_interrupt("q1"), "no").await, decided, "while it is running");
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let (consumed, closed) = (vec!["iq1".to_owned()], vec![id("q1")]);
    world.done(&CommitRequest { consumed, closed, ..draft }).await;
    let late = world.signal(&first).await.unwrap();
    assert_eq!(late, SignalReply::NotOpen, "after it was taken, the journal knows the answer");
}

/// An answer to a gate that is not open is kept for its opening, one for each gate.
pub async fn early_answer_is_kept(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&new_run("r1")).await;
    let early = signal_request(&run, to_gate("review"), "yes");
    let kept = |said: &SignalReply| matches!(said, SignalReply::Kept { .. });
    assert!(kept(&world.signal(&early).await.unwrap()));
    assert!(kept(&world.signal(&early).await.unwrap()), "its repeat");
    let decided = SignalReply::Decided { record: b"yes".to_vec() };
    assert_eq!(world.answer(&run, to_gate("review"), "no").await, decided);
    assert!(kept(&world.answer(&run, to_gate("publish"), "later").await));
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
    assert_eq!(keys(&world, &run).await, ["gpublish", "greview"]);

    let claimed = world.claim_next().await;
    assert_eq!(claimed.inbox.len(), 2, "the owner gets the early answers");
}

/// An answer to a gate that the sender saw closed is taken only while the run stands where it was
/// seen: behind that the gate may have opened and been answered by somebody else.
pub async fn early_answer_of_an_old_look_is_refused(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let seen = |seq| Address::Unopened { gate: "review".to_owned(), seq };
    let seq = claimed.head.seq;
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { opened: vec![question("q1", Some("review"))], ..draft }).await;
    assert_eq!(world.answer(&run, seen(seq), "no").await, SignalReply::Moved, "it has opened");
    let head = world.head_of(&run).await;
    let draft = world.draft_on(&claimed.lease, &head, 1, Disposition::Continue);
    world.done(&CommitRequest { closed: vec![id("q1")], ..draft }).await;
    assert_eq!(world.answer(&run, seen(seq), "no").await, SignalReply::Moved, "and closed");
    assert_eq!(world.inbox(&run).await.unwrap(), []);
    let seq = world.head_of(&run).await.seq;
    let kept = world.answer(&run, seen(seq), "yes").await;
    assert!(matches!(kept, SignalReply::Kept { .. }), "{kept:?}");
    assert_eq!(keys(&world, &run).await, ["greview"]);
}

/// Once the gate is open, the early answer has decided it already.
pub async fn early_answer_decides_the_gate(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    world.answer(&run, to_gate("review"), "early").await;
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { opened: vec![question("q1", Some("review"))], ..draft }).await;
    let decided = SignalReply::Decided { record: b"early".to_vec() };
    for address in [to_interrupt("q1"), to_gate("review"), Address::Only] {
        assert_eq!(world.answer(&run, address, "no").await, decided);
    }
    assert_eq!(keys(&world, &run).await, ["greview"]);
}

/// A run that is queued, scheduled or running takes an answer without a move.
pub async fn answer_moves_only_parked_runs(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let opened = vec![question("q1", None), question("q2", None), question("q3", None)];
    world.done(&CommitRequest { opened, ..draft }).await;
    assert_delivered(&world.answer(&run, to_interrupt("q1"), "1").await, "q1");
    assert_eq!(world.status_of(&run).await, RunStatus::Running);

    let head = world.head_of(&run).await;
    let until_ms = world.now_ms().await.unwrap() + HOUR_MS;
    let later = Disposition::Reschedule { until_ms };
    world.done(&world.draft_on(&claimed.lease, &head, 1, later)).await;
    assert_delivered(&world.answer(&run, to_interrupt("q2"), "2").await, "q2");
    assert_eq!(world.status_of(&run).await, RunStatus::Scheduled);

    world.start_now(&run).await.unwrap();
    assert_delivered(&world.answer(&run, to_interrupt("q3"), "3").await, "q3");
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
    assert_eq!(keys(&world, &run).await, ["iq1", "iq2", "iq3"]);

    let late = NewRun { start: When::In(HOUR_MS), ..new_run("late") };
    let late = world.created(&late).await;
    world.answer(&late, to_gate("review"), "early").await;
    assert_eq!(world.status_of(&late).await, RunStatus::Scheduled);
}

/// A waiting answer never passes to a later opening of its gate: each opening has its own id.
pub async fn answer_stays_with_its_opening(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let parked = world.parked("r1", &[question("visit-1", Some("review"))]).await;
    let run = parked.head.run;
    world.answer(&run, to_gate("review"), "first").await;
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    let request = CommitRequest {
        consumed: vec!["ivisit-1".to_owned()],
        closed: vec![id("visit-1")],
        opened: vec![question("visit-2", Some("review"))],
        ..draft
    };
    assert_eq!(world.done(&request).await, (RunStatus::Parked, vec![]));
    assert_eq!(world.answer(&run, to_interrupt("visit-1"), "late").await, SignalReply::NotOpen);
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
    assert_delivered(&world.answer(&run, to_gate("review"), "second").await, "visit-2");
}

fn assert_delivered(said: &SignalReply, question: &str) {
    let SignalReply::Delivered { interrupt, .. } = said else { panic!("{said:?}") };
    assert_eq!(interrupt.as_str(), question);
}

async fn keys(world: &World, run: &RunId) -> Vec<String> {
    let mut keys = names(world.inbox(run).await.unwrap().into_iter().map(|entry| entry.key));
    keys.sort();
    keys
}
