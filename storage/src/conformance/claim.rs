//! Claims, leases and fencing: who owns a run, and how that ends.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use std::time::Duration;

use holdpoint_graph::{End, Life, Pair, RunStatus};

use super::{
    Bench,
    world::{
        HOUR_MS, PATIENCE, World, claim_request, id, lane, names, new_run, question, to_interrupt,
    },
};
use crate::{
    AppendKind, ClaimRequest, CommitReply, CommitRequest, Disposition, InboxEntry, Lease, NewRun,
    Renewal,
};

/// A claim brings the head after it, the lease, the payload, and an empty journal.
pub async fn claim_brings_the_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("r1")).await;
    let request = claim_request("w1", 5);
    let claims = world.claim(&request).await.unwrap();
    let claimed = claims.runs.first().unwrap();
    assert_eq!(claimed.payload, new_run("r1").payload);
    assert_eq!((claimed.snapshot.as_ref(), claimed.journal.len()), (None, 0));
    assert_eq!((claimed.inbox.len(), claimed.session_last.as_ref()), (0, None));
    assert_eq!(claimed.lease.run.as_str(), "r1");
    assert_eq!(claimed.lease.worker, request.worker);
    assert_eq!(claimed.lease.pair.nonce, request.nonce);

    let head = &claimed.head;
    assert_eq!((head.claims, head.lost_in_row, head.lost_in_life), (1, 1, 1));
    assert_eq!(head.epoch, claimed.lease.pair.epoch);
    assert_eq!(head.started_at_ms, Some(claims.now_ms));
    let Life::Running { lease } = &head.life else { panic!("{:?}", head.life) };
    assert_eq!((&lease.pair, &lease.worker), (&claimed.lease.pair, &request.worker));
    assert_eq!(lease.deadline_ms, claims.now_ms + HOUR_MS);
    assert_eq!(*head, world.head_of(&id("r1")).await, "the head is the stored one");
}

/// The claim of a run with history brings its snapshot, the records after it, and its inbox.
pub async fn claim_brings_the_history(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let first = world.draft(&claimed, 3, Disposition::Continue);
    world.done(&CommitRequest { snapshot: Some(b"snap".to_vec()), ..first }).await;
    let head = world.head_of(&id("r1")).await;
    let opened = vec![question("q1", None)];
    let park = Disposition::Park { wake_at_ms: None };
    let second = CommitRequest { opened, ..world.draft_on(&claimed.lease, &head, 2, park) };
    world.done(&second).await;
    world.answer(&id("r1"), to_interrupt("q1"), "yes").await;

    let again = world.claim_next().await;
    assert_eq!(again.snapshot, Some(b"snap".to_vec()));
    assert_eq!(again.journal, second.records);
    let entry = InboxEntry { key: "iq1".to_owned(), record: b"yes".to_vec() };
    assert_eq!(again.inbox, [entry]);
    assert_eq!((again.head.seq, again.head.snapshot_seq), (5, 3));
    assert_eq!(again.head.started_at_ms, claimed.head.started_at_ms, "the first claim's time");
    assert_eq!(again.head.claims, 2);
}

/// Every claim of a run has a higher epoch than the last, however it ended.
pub async fn epoch_rises(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("r1")).await;
    let mut last = 0;
    for round in 0..6 {
        let claimed = world.claim_next().await;
        assert!(claimed.lease.pair.epoch > last, "round {round}");
        last = claimed.lease.pair.epoch;
        let head = world.head_of(&id("r1")).await;
        match round % 3 {
            0 => assert!(world.release(&claimed.lease).await.unwrap()),
            1 => assert_eq!(world.lost(&id("w1"), "gone", &[0]).await.unwrap().len(), 1),
            _ => {
                let back = Disposition::Reschedule { until_ms: 0 };
                world.done(&world.draft_on(&claimed.lease, &head, 1, back)).await;
            }
        }
        assert_eq!(world.head_of(&id("r1")).await.epoch, last, "the epoch outlives the lease");
    }
}

/// A repeat of a claim answers the same runs under the same pairs and takes nothing new.
pub async fn repeated_claim_answers_the_same(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c"] {
        world.created(&new_run(name)).await;
    }
    let request = claim_request("w1", 2);
    let first = world.claim(&request).await.unwrap().runs;
    let again = world.claim(&request).await.unwrap().runs;
    let mut leases: Vec<Lease> = again.iter().map(|claimed| claimed.lease.clone()).collect();
    leases.sort_by(|a, b| a.run.cmp(&b.run));
    assert_eq!(leases, first.iter().map(|claimed| claimed.lease.clone()).collect::<Vec<_>>());
    assert!(again.iter().all(|claimed| claimed.head.claims == 1), "no second claim is counted");
    assert!(
        again.iter().all(|claimed| claimed.payload == new_run(claimed.head.run.as_str()).payload)
    );
    assert_eq!(world.status_of(&id("c")).await, RunStatus::Queued);
}

/// A repeat after some of its runs went on answers the rest; after all did, it answers nothing.
pub async fn repeated_claim_takes_nothing_new(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c"] {
        world.created(&new_run(name)).await;
    }
    let request = claim_request("w1", 2);
    let first = world.claim(&request).await.unwrap().runs;
    world.end(&first[0], End::Completed).await;
    assert_eq!(world.claimed_ids(&request).await, ["b"]);
    assert!(world.release(&first[1].lease).await.unwrap());
    assert!(world.claimed_ids(&request).await.is_empty(), "nothing is left of that claim");
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["b", "c"]);
}

/// A run that lost its worker is claimed alone, so that the next crash harms no neighbour.
pub async fn lost_run_is_claimed_alone(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("crashed")).await;
    world.claim_next().await;
    world.lost(&id("w1"), "gone", &[0]).await.unwrap();
    world.created(&new_run("b")).await;
    world.created(&NewRun { priority: 9, ..new_run("a") }).await;

    let ids = world.claimed_ids(&claim_request("w1", 5)).await;
    assert!(ids.contains(&"a".to_owned()) && !ids.contains(&"crashed".to_owned()), "{ids:?}");
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["crashed"]);
}

/// A claim stops at its budget of bytes, but never before its first run.
pub async fn claim_keeps_its_budget(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c", "d"] {
        world.created(&NewRun { payload: vec![7; 1_000], ..new_run(name) }).await;
    }
    let request = ClaimRequest { bytes_max: 1, ..claim_request("w1", 9) };
    assert_eq!(world.claimed_ids(&request).await, ["a"]);
    let request = ClaimRequest { bytes_max: 1_500, ..claim_request("w1", 9) };
    let count = world.claimed_ids(&request).await.len();
    assert!((1..=2).contains(&count), "{count} runs of 1,000 bytes in 1,500");
    let request = ClaimRequest { bytes_max: 100_000, ..claim_request("w1", 9) };
    assert_eq!(world.claimed_ids(&request).await.len(), 3 - count);
}

/// A renewal moves the deadline and tells of a wish to cancel and of waiting answers.
pub async fn renewal_keeps_and_tells(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let lease = claimed.lease.clone();
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    world.done(&CommitRequest { opened: vec![question("q1", None)], ..draft }).await;
    let renewed = renew(&world, &lease, 2 * HOUR_MS).await;
    assert_eq!(renewed, Renewal::Kept { cancel: false, has_inbox: false });
    let head = world.head_of(&lease.run).await;
    let Life::Running { lease: term } = &head.life else { panic!("{:?}", head.life) };
    assert!(term.deadline_ms >= claimed.head.updated_at_ms + 2 * HOUR_MS);

    world.answer(&lease.run, to_interrupt("q1"), "yes").await;
    let renewed = renew(&world, &lease, HOUR_MS).await;
    assert_eq!(renewed, Renewal::Kept { cancel: false, has_inbox: true });
    let cancel = AppendKind::Cancel { rollback: false };
    world.append(&world.append_on(&head), &cancel).await.unwrap();
    let renewed = renew(&world, &lease, HOUR_MS).await;
    assert_eq!(renewed, Renewal::Kept { cancel: true, has_inbox: true });
}

/// Renewals are answered in the order of the leases, each for itself.
pub async fn renewals_are_in_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c"] {
        world.created(&new_run(name)).await;
    }
    let claims = world.claim_up_to(3).await;
    world.end(&claims[1], End::Completed).await;
    let leases: Vec<Lease> = claims.iter().rev().map(|claimed| claimed.lease.clone()).collect();
    let kept = Renewal::Kept { cancel: false, has_inbox: false };
    let expected = [kept.clone(), Renewal::Fenced, kept];
    assert_eq!(world.renew(&leases, HOUR_MS).await.unwrap(), expected);
    assert_eq!(world.renew(&[], HOUR_MS).await.unwrap(), []);
    let unknown = Lease { run: id("unknown"), ..leases[0].clone() };
    assert_eq!(world.renew(&[unknown], HOUR_MS).await.unwrap(), [Renewal::Fenced]);
}

/// A lease past its end that nobody took yet may still be renewed.
pub async fn late_renewal_is_kept(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("r1")).await;
    let request = ClaimRequest { lease_ms: 50, ..claim_request("w1", 1) };
    let lease = world.claim(&request).await.unwrap().runs.remove(0).lease;
    world.let_pass(50).await;
    let kept = Renewal::Kept { cancel: false, has_inbox: false };
    assert_eq!(renew(&world, &lease, HOUR_MS).await, kept);
    assert!(world.tick_once().await.reaped.is_empty());
}

/// A release hands the run back at once; the claim does not count as a lost worker.
pub async fn release_hands_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    assert!(world.release(&claimed.lease).await.unwrap());
    let head = world.head_of(&claimed.head.run).await;
    assert_eq!((head.status(), head.claims), (RunStatus::Queued, 1));
    assert_eq!((head.lost_in_row, head.lost_in_life, head.losses.len()), (0, 0, 0));
    assert_eq!(world.claim_next().await.head.run, claimed.head.run);
}

/// After a release, an end, or another claim, the old pair can do nothing at all.
pub async fn stale_lease_is_fenced(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let first = world.running("r1").await;
    assert!(world.release(&first.lease).await.unwrap());
    assert_fenced(&world, &first.lease).await;

    let second = world.claim_next().await;
    assert_fenced(&world, &first.lease).await;
    let pair = Pair { nonce: "forged".to_owned(), ..second.lease.pair.clone() };
    assert_fenced(&world, &Lease { pair, ..second.lease.clone() }).await;
    let pair = Pair { epoch: second.lease.pair.epoch + 1, ..second.lease.pair.clone() };
    assert_fenced(&world, &Lease { pair, ..second.lease.clone() }).await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Running, "the owner is undisturbed");

    world.end(&second, End::Completed).await;
    assert_fenced(&world, &second.lease).await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Completed);
}

/// A run that lost its worker does not listen to it any more.
pub async fn lost_worker_is_fenced(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    world.lost(&id("w1"), "gone", &[0]).await.unwrap();
    assert_fenced(&world, &claimed.lease).await;
    world.claim(&claim_request("w1", 1)).await.unwrap();
    assert_fenced(&world, &claimed.lease).await;
}

/// A queued run with a wish to cancel is claimed like any other: its owner ends it.
pub async fn unwanted_run_is_claimable(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let cancel = AppendKind::Cancel { rollback: false };
    world.append(&world.append_on(&claimed.head), &cancel).await.unwrap();
    assert!(world.release(&claimed.lease).await.unwrap());
    let again = world.claim_next().await;
    assert!(again.head.cancel.is_some(), "the owner sees the wish");
    world.end(&again, End::Cancelled).await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Cancelled);
}

/// Two workers that claim at the same time never get the same run, and together get all.
pub async fn claims_do_not_overlap(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let items: Vec<NewRun> = (0..30).map(|n| new_run(&format!("r{n}"))).collect();
    world.enqueue(&items, false).await.unwrap();
    let tasks: Vec<_> = (0..6)
        .map(|worker| {
            let store = world.store.clone();
            let request = claim_request(&format!("w{worker}"), 5);
            tokio::spawn(async move { store.claim(&request).await.unwrap().runs })
        })
        .collect();
    let mut claimed = Vec::new();
    for task in tasks {
        claimed.extend(names(task.await.unwrap().into_iter().map(|run| run.head.run)));
    }
    claimed.sort();
    let mut expected = names(items.into_iter().map(|item| item.run));
    expected.sort();
    assert_eq!(claimed, expected);
}

/// A wait for a lane ends when a run comes to it, and at the latest when its patience does.
pub async fn wait_wakes_on_enqueue(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.wait(&[lane()], Duration::from_millis(20)).await;
    let store = world.store.clone();
    let waiting = tokio::spawn(async move {
        while store.claim(&claim_request("w1", 1)).await.unwrap().runs.is_empty() {
            store.wait(&[lane()], PATIENCE).await;
        }
    });
    super::world::look_again().await;
    world.created(&new_run("r1")).await;
    let woken = tokio::time::timeout(PATIENCE / 2, waiting).await;
    woken.expect("the wait ends long before its patience").unwrap();
}

async fn renew(world: &World, lease: &Lease, lease_ms: i64) -> Renewal {
    let mut renewed = world.renew(std::slice::from_ref(lease), lease_ms).await.unwrap();
    assert_eq!(renewed.len(), 1);
    renewed.remove(0)
}

async fn assert_fenced(world: &World, lease: &Lease) {
    let before = world.head_of(&lease.run).await;
    assert_eq!(renew(world, lease, HOUR_MS).await, Renewal::Fenced);
    assert!(!world.release(lease).await.unwrap());
    for disposition in [
        Disposition::Continue,
        Disposition::Park { wake_at_ms: None },
        Disposition::Reschedule { until_ms: 0 },
        Disposition::Finish { end: End::Completed },
        Disposition::Finish { end: End::Cancelled },
    ] {
        let request = world.draft_on(lease, &before, 1, disposition);
        assert_eq!(world.commit(&request).await.unwrap(), CommitReply::Fenced, "{disposition:?}");
    }
    assert_eq!(world.head_of(&lease.run).await, before, "nothing was written");
}
