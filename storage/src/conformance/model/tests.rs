//! A light test of the model itself: the cases that its reader would try first.

use super::Model;
use crate::{
    CommitReply, CommitRequest, Disposition, Enqueued, IfBusy, Lease, NewRun, SignalReply,
    conformance::world::{
        HOUR_MS, claim_request, id, names, new_run, question, session_run, signal_request,
        tick_request, to_interrupt,
    },
};
use holdpoint_graph::{End, RunStatus};

const NOW_MS: i64 = 1_700_000_000_000;

fn with(items: &[NewRun]) -> Model {
    let mut model = Model::default();
    let said = model.enqueue(items, false, NOW_MS);
    assert!(said.iter().all(|said| matches!(said, Enqueued::Created { .. })), "{said:?}");
    model
}

fn claim(model: &mut Model, max: usize) -> Vec<Lease> {
    let claims = model.claim(&claim_request("w1", max), NOW_MS);
    claims.runs.into_iter().map(|claimed| claimed.lease).collect()
}

fn commit(model: &mut Model, lease: &Lease, disposition: Disposition) -> CommitReply {
    let head = model.head(&lease.run).expect("it is there");
    let request = CommitRequest {
        lease: lease.clone(),
        request: id(&format!("c{}", head.updated_at_ms)),
        from: head.seq,
        previous: head.hash.clone(),
        records: Vec::new(),
        hash: head.hash.clone(),
        snapshot: None,
        consumed: Vec::new(),
        opened: vec![question("q1", None)],
        closed: Vec::new(),
        is_progress: true,
        pin: None,
        lease_ms: HOUR_MS,
        disposition,
    };
    model.commit(&request, NOW_MS).expect("it is there")
}

#[test]
fn refused_batch_stores_nothing() {
    let mut model = with(&[new_run("a")]);
    let taken = NewRun { request: id("another"), ..new_run("a") };
    let said = model.enqueue(&[new_run("b"), taken.clone()], false, NOW_MS);
    assert_eq!(said[1], Enqueued::RunExists);
    assert!(model.head(&id("b")).is_none());
    model.enqueue(&[new_run("b"), taken], true, NOW_MS);
    assert!(model.head(&id("b")).is_some());
}

#[test]
fn one_run_of_a_session_at_a_time() {
    let items = ["a", "b"].map(|name| session_run(name, IfBusy::Enqueue));
    let mut model = with(&items);
    let leases = claim(&mut model, 5);
    assert_eq!(names(leases.iter().map(|lease| &lease.run)), ["a"]);
    commit(&mut model, &leases[0], Disposition::Finish { end: End::Completed });
    assert_eq!(names(claim(&mut model, 5).iter().map(|lease| &lease.run)), ["b"]);
    assert_eq!(model.session(&id("s1")).and_then(|session| session.last), Some(id("a")));
}

#[test]
fn stale_pair_is_fenced() {
    let mut model = with(&[new_run("a")]);
    let stale = claim(&mut model, 1).remove(0);
    assert!(model.release(&stale, NOW_MS));
    let lease = claim(&mut model, 1).remove(0);
    assert!(lease.pair.epoch > stale.pair.epoch);
    assert_eq!(commit(&mut model, &stale, Disposition::Continue), CommitReply::Fenced);
    assert!(!model.release(&stale, NOW_MS));
}

#[test]
fn answer_wakes_a_parked_run() {
    let mut model = with(&[new_run("a")]);
    let lease = claim(&mut model, 1).remove(0);
    commit(&mut model, &lease, Disposition::Park { wake_at_ms: None });
    assert_eq!(model.head(&id("a")).map(|head| head.status()), Some(RunStatus::Parked));
    let request = signal_request(&id("a"), to_interrupt("q1"), "yes");
    for _ in 0..2 {
        let said = model.signal(&request, NOW_MS);
        assert!(matches!(said, SignalReply::Delivered { .. }), "{said:?}");
    }
    assert_eq!(model.head(&id("a")).map(|head| head.status()), Some(RunStatus::Queued));
}

#[test]
fn unwanted_run_is_closed() {
    let mut model = with(&[session_run("a", IfBusy::Enqueue), session_run("b", IfBusy::Rollback)]);
    let ticked = model.tick(&tick_request(), NOW_MS);
    assert_eq!(names(ticked.closing.iter().map(|claimed| &claimed.head.run)), ["a"]);
    commit(&mut model, &ticked.closing[0].lease, Disposition::Finish { end: End::Cancelled });
    let session = model.session(&id("s1")).expect("it is there");
    assert_eq!((session.active, session.last), (Some(id("b")), None));
}
