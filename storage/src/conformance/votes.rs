//! Questions that need several people, and questions that are shown anew.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{Ballot, RunStatus};

use super::{
    Bench,
    world::{World, id, question, signal_request},
};
use crate::{
    Address, AppendKind, AppendReply, CommitRequest, Disposition, InboxEntry, OpenedInterrupt,
    QuestionFilter, SignalReply, SignalRequest, Vote,
};

fn ballot(voter: &str, choice: &str, needed: u32) -> Ballot {
    Ballot { voter: voter.to_owned(), choice: choice.to_owned(), needed }
}

fn vote(world_run: &holdpoint_graph::RunId, ballot: Ballot) -> SignalRequest {
    let record = format!("{} says {}", ballot.voter, ballot.choice);
    let request = signal_request(world_run, Address::Interrupt(id("q1")), &record);
    SignalRequest { ballot: Some(ballot), ..request }
}

fn delivered(said: SignalReply) -> (bool, bool) {
    let SignalReply::Delivered { is_vote, is_repeat, .. } = said else { panic!("{said:?}") };
    (is_vote, is_repeat)
}

/// As many votes for one choice as it needs decide; each voter has one, and the last is the answer.
pub async fn votes_decide_together(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.parked("r1", &[question("q1", Some("review"))]).await.head.run;
    let ann = vote(&run, ballot("ann", "yes", 3));
    assert_eq!(delivered(world.signal(&ann).await.unwrap()), (true, false));
    assert_eq!(delivered(world.signal(&ann).await.unwrap()), (true, true), "its repeat");
    assert_eq!(world.status_of(&run).await, RunStatus::Queued, "the vote is to be recorded");
    let again = vote(&run, ballot("ann", "no", 1));
    assert_eq!(world.signal(&again).await.unwrap(), SignalReply::Voted);
    let other = vote(&run, ballot("bob", "other", 3));
    assert_eq!(delivered(world.signal(&other).await.unwrap()), (true, false));
    let cid = vote(&run, ballot("cid", "yes", 3));
    assert_eq!(delivered(world.signal(&cid).await.unwrap()), (true, false), "two of three");
    let dan = vote(&run, ballot("dan", "yes", 3));
    assert_eq!(delivered(world.signal(&dan).await.unwrap()), (false, false), "three of three");
    let late = vote(&run, ballot("eve", "yes", 3));
    let decided = SignalReply::Decided { record: b"dan says yes".to_vec() };
    assert_eq!(world.signal(&late).await.unwrap(), decided);
    let inbox = world.inbox(&run).await.unwrap();
    let votes: Vec<(&str, Vote)> = inbox.iter().filter_map(InboxEntry::vote).collect();
    assert_eq!((inbox.len(), votes.len()), (4, 3));
}

/// Votes that were taken out of the inbox stand with their question and count on.
pub async fn counted_votes_stay_with_their_question(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.parked("r1", &[question("q1", None)]).await.head.run;
    world.signal(&vote(&run, ballot("ann", "yes", 2))).await.unwrap();
    let claimed = world.claim_next().await;
    let key = claimed.inbox.first().unwrap().key.clone();
    let counted = vec![Vote { choice: "yes".to_owned(), voter: "ann".to_owned() }];
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    let request = CommitRequest {
        consumed: vec![key],
        opened: vec![OpenedInterrupt { votes: counted, ..question("q1", None) }],
        ..draft
    };
    assert_eq!(world.done(&request).await, (RunStatus::Parked, vec![]));
    let again = vote(&run, ballot("ann", "yes", 2));
    assert_eq!(world.signal(&again).await.unwrap(), SignalReply::Voted);
    assert_eq!(world.status_of(&run).await, RunStatus::Parked, "nothing was taken");
    let bob = vote(&run, ballot("bob", "yes", 2));
    assert_eq!(delivered(world.signal(&bob).await.unwrap()), (false, false));
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
}

/// A vote that came while its question was being parked keeps the run with its owner.
pub async fn an_unread_vote_holds_a_park_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let run = claimed.head.run.clone();
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { opened: vec![question("q1", None)], ..draft }).await;
    world.signal(&vote(&run, ballot("ann", "yes", 2))).await.unwrap();
    let head = world.head_of(&run).await;
    let park = Disposition::Park { wake_at_ms: None };
    let (status, inbox) = world.done(&world.draft_on(&claimed.lease, &head, 1, park)).await;
    assert_eq!((status, inbox.len()), (RunStatus::Running, 1));
}

/// A question that is shown anew is about something else, keeps its time, and forgets its votes.
pub async fn an_edit_shows_a_question_anew(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.parked("r1", &[question("q1", Some("review"))]).await.head.run;
    let before = world.questions(&QuestionFilter::of_run(&run), None, 10).await.unwrap().rows;
    let anew = OpenedInterrupt {
        args_hash: "other-args".to_owned(),
        body: b"{\"question\":\"anew\"}".to_vec(),
        ..question("q1", Some("review"))
    };
    let append = world.append_on(&world.head_of(&run).await);
    let said = world.append(&append, &AppendKind::Edit { shown: vec![anew] }).await.unwrap();
    assert!(matches!(said, AppendReply::Done { status: RunStatus::Parked, .. }), "{said:?}");
    let after = world.questions(&QuestionFilter::of_run(&run), None, 10).await.unwrap().rows;
    let [was, is] = [&before, &after].map(|rows| rows.first().unwrap());
    assert_eq!((is.opened_at_ms, after.len()), (was.opened_at_ms, 1));
    assert_eq!(is.body, b"{\"question\":\"anew\"}");
    let signal = signal_request(&run, Address::Only, "yes");
    let old = SignalRequest { args_hash: Some("args-of-q1".to_owned()), ..signal.clone() };
    let changed = SignalReply::ArgsChanged { args_hash: "other-args".to_owned() };
    assert_eq!(world.signal(&old).await.unwrap(), changed);
    let new = SignalRequest { args_hash: Some("other-args".to_owned()), ..signal };
    assert_eq!(delivered(world.signal(&new).await.unwrap()), (false, false));
}
