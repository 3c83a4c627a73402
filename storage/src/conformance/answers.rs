//! Several answers of one call: all are stored, or none.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{Ballot, End, RunId, RunStatus};

use super::{
    Bench,
    world::{World, id, names, question, signal_request, to_gate, to_interrupt},
};
use crate::{Address, SignalReply, SignalRequest, SignalsReply};

fn vote(run: &RunId, question: &str, voter: &str, needed: u32) -> SignalRequest {
    let (voter, choice) = (voter.to_owned(), "yes".to_owned());
    let request = signal_request(run, to_interrupt(question), &format!("{voter} says yes"));
    SignalRequest { ballot: Some(Ballot { voter, choice, needed }), ..request }
}

/// Each reply as (question, is a vote, is a repeat); of a kept answer only that.
fn taken(said: SignalsReply) -> Vec<String> {
    let SignalsReply::Taken(replies) = said else { panic!("{said:?}") };
    let one = |reply: &SignalReply| match reply {
        SignalReply::Delivered { interrupt, is_vote, is_repeat, .. } => {
            format!("{interrupt} {is_vote} {is_repeat}")
        }
        SignalReply::Kept { .. } => "kept".to_owned(),
        other => panic!("{other:?} is no answer that was taken"),
    };
    replies.iter().map(one).collect()
}

async fn keys(world: &World, run: &RunId) -> Vec<String> {
    let mut keys = names(world.inbox(run).await.unwrap().into_iter().map(|entry| entry.key));
    keys.sort();
    keys
}

/// Answers, votes and an early answer of one call are stored together and wake the run once; the
/// whole call may be repeated. Without an answer nothing happens.
pub async fn several_answers_are_taken_together(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let open = [question("q1", Some("review")), question("q2", None), question("q3", None)];
    let run = world.parked("r1", &open).await.head.run;
    assert_eq!(taken(world.signal_all(&[]).await.unwrap()), Vec::<String>::new());
    assert_eq!(world.status_of(&run).await, RunStatus::Parked);
    let answers = [
        signal_request(&run, to_gate("review"), "one"),
        signal_request(&run, to_interrupt("q2"), "two"),
        vote(&run, "q3", "ann", 2),
        signal_request(&run, to_gate("publish"), "early"),
    ];
    let said = taken(world.signal_all(&answers).await.unwrap());
    assert_eq!(said, ["q1 false false", "q2 false false", "q3 true false", "kept"]);
    let stored = ["gpublish", "iq1", "iq2", "vq3|yes|ann"];
    assert_eq!(keys(&world, &run).await, stored);
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
    let again = taken(world.signal_all(&answers).await.unwrap());
    assert_eq!(again, ["q1 false true", "q2 false true", "q3 true true", "kept"]);
    assert_eq!(keys(&world, &run).await, stored);
    assert_eq!(world.claim_next().await.inbox.len(), 4, "and it is claimable once");
}

/// One answer that is refused, for whatever reason and at whatever place, means that none is
/// stored; the reply names the first that is.
pub async fn one_refused_answer_means_none(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let open = [question("q1", None), question("q2", Some("review")), question("q3", None)];
    let run = world.parked("r1", &open).await.head.run;
    let good = || signal_request(&run, to_interrupt("q1"), "good");
    let other = signal_request(&run, to_interrupt("q2"), "other");
    let stale = SignalRequest { args_hash: Some("old".to_owned()), ..other.clone() };
    let unknown = signal_request(&run, to_interrupt("q9"), "unknown");
    let only = signal_request(&run, Address::Only, "only");
    let changed = SignalReply::ArgsChanged { args_hash: "args-of-q2".to_owned() };
    let ids = ["q1", "q2", "q3"].map(id).to_vec();
    for (bad, reply) in [
        (&stale, changed),
        (&unknown, SignalReply::NotOpen),
        (&only, SignalReply::Ambiguous { open: ids }),
    ] {
        for (answers, index) in [
            (vec![bad.clone(), good()], 0),
            (vec![good(), bad.clone()], 1),
            (vec![good(), signal_request(&run, to_gate("publish"), "early"), bad.clone()], 2),
            (vec![good(), bad.clone(), bad.clone()], 1),
        ] {
            let said = world.signal_all(&answers).await.unwrap();
            assert_eq!(said, SignalsReply::Refused { index, reply: reply.clone() });
            assert_eq!(world.inbox(&run).await.unwrap(), []);
            assert_eq!(world.status_of(&run).await, RunStatus::Parked);
        }
    }
    world.signal(&vote(&run, "q3", "ann", 3)).await.unwrap();
    world.signal(&other).await.unwrap();
    let second = signal_request(&run, to_interrupt("q2"), "second");
    let decided = SignalReply::Decided { record: b"other".to_vec() };
    for (bad, reply) in [(second, decided), (vote(&run, "q3", "ann", 3), SignalReply::Voted)] {
        let said = world.signal_all(&[good(), bad]).await.unwrap();
        assert_eq!(said, SignalsReply::Refused { index: 1, reply });
        assert_eq!(keys(&world, &run).await, ["iq2", "vq3|yes|ann"]);
    }
    let ended = world.ended("r2", End::Completed).await;
    for (run, reply) in [
        (ended, SignalReply::Final { status: RunStatus::Completed }),
        (id("unknown"), SignalReply::NotFound),
    ] {
        let answers = ["q1", "q2"].map(|name| signal_request(&run, to_interrupt(name), "late"));
        let said = world.signal_all(&answers).await.unwrap();
        assert_eq!(said, SignalsReply::Refused { index: 0, reply });
    }
}

/// A second answer of the call to one question meets the first one; votes of it count together.
pub async fn a_later_answer_sees_those_before_it(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let open = [question("q1", Some("review")), question("q2", None)];
    let run = world.parked("r1", &open).await.head.run;
    let first = signal_request(&run, to_interrupt("q1"), "first");
    let second = signal_request(&run, to_gate("review"), "second");
    let said = world.signal_all(&[first.clone(), second]).await.unwrap();
    let reply = SignalReply::Decided { record: b"first".to_vec() };
    assert_eq!(said, SignalsReply::Refused { index: 1, reply });
    let twice = [vote(&run, "q2", "ann", 3), vote(&run, "q2", "ann", 3)];
    let said = world.signal_all(&twice).await.unwrap();
    assert_eq!(said, SignalsReply::Refused { index: 1, reply: SignalReply::Voted });
    assert_eq!(world.inbox(&run).await.unwrap(), []);

    let votes = [vote(&run, "q2", "ann", 2), first, vote(&run, "q2", "bob", 2)];
    let said = taken(world.signal_all(&votes).await.unwrap());
    assert_eq!(said, ["q2 true false", "q1 false false", "q2 false false"]);
    assert_eq!(keys(&world, &run).await, ["iq1", "iq2", "vq2|yes|ann"]);
}
