//! Several runs enter the store in one call: all or nothing, or each for itself.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::RunStatus;

use super::{
    Bench,
    world::{World, claim_request, new_run, session_run},
};
use crate::{Enqueued, IfBusy, NewRun};

/// A batch is stored in its order.
pub async fn batch_keeps_its_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let items: Vec<NewRun> = (1..=5).map(|n| new_run(&format!("r{n}"))).collect();
    let reply = world.enqueue(&items, false).await.unwrap();
    assert_eq!(reply.items, items.iter().map(created).collect::<Vec<_>>());
    let ids = world.claimed_ids(&claim_request("w1", 5)).await;
    assert_eq!(ids, ["r1", "r2", "r3", "r4", "r5"]);
}

/// An empty batch is answered by an empty reply.
pub async fn empty_batch_is_nothing(bench: &dyn Bench) {
    let world = World::new(bench).await;
    assert_eq!(world.enqueue(&[], false).await.unwrap().items, []);
    assert_eq!(world.enqueue(&[], true).await.unwrap().items, []);
}

/// One refused item means that nothing of the batch is stored; the reply names it still, and the
/// same batch may be sent again once the reason is gone.
pub async fn refused_item_stops_the_batch(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("taken")).await;
    let items = [new_run("r1"), other_request("taken"), new_run("r2")];
    let reply = world.enqueue(&items, false).await.unwrap();
    assert_eq!(reply.items, [created(&items[0]), Enqueued::RunExists, created(&items[2])]);
    for name in ["r1", "r2"] {
        assert!(world.head(&new_run(name).run).await.unwrap().is_none(), "{name} was stored");
    }
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["taken"]);

    let reply = world.enqueue(&[new_run("r1"), new_run("r2")], false).await.unwrap();
    assert_eq!(reply.items, [created(&items[0]), created(&items[2])]);
}

/// Refused as a whole, a batch leaves no key, no session and no wish to cancel behind.
pub async fn refused_batch_leaves_no_trace(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("taken")).await;
    let active = world.created(&session_run("active", IfBusy::Enqueue)).await;
    let keyed = NewRun { key: Some("k1".parse().unwrap()), ..new_run("r1") };
    let fresh = NewRun { session: Some("s2".parse().unwrap()), ..new_run("r2") };
    let rude = session_run("r3", IfBusy::Interrupt);
    let items = [keyed.clone(), fresh, rude, other_request("taken")];
    let reply = world.enqueue(&items, false).await.unwrap();
    assert_eq!(reply.items.last(), Some(&Enqueued::RunExists));

    assert!(world.session(&"s2".parse().unwrap()).await.unwrap().is_none());
    assert_eq!(world.head_of(&active).await.cancel, None);
    let session = world.session(&"s1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((session.active, session.waiting.len(), session.runs), (Some(active), 0, 1));
    world.created(&NewRun { run: "r9".parse().unwrap(), ..keyed }).await;
}

/// With `partial` the refused items alone are left out.
pub async fn partial_batch_stores_the_rest(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("taken")).await;
    let items = [new_run("r1"), other_request("taken"), new_run("r2")];
    let reply = world.enqueue(&items, true).await.unwrap();
    assert_eq!(reply.items, [created(&items[0]), Enqueued::RunExists, created(&items[2])]);
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["taken", "r1", "r2"]);
}

/// Each item sees what the items before it did: a key, a session, a place in the queue.
pub async fn items_see_each_other(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let keyed = |name: &str, hash: &str| NewRun {
        key: Some("k1".parse().unwrap()),
        payload_hash: hash.to_owned(),
        ..new_run(name)
    };
    let full = NewRun { queue_depth_max: 2, ..new_run("r6") };
    let items = [
        keyed("r1", "h1"),
        keyed("r2", "h1"),
        keyed("r3", "h2"),
        session_run("r4", IfBusy::Enqueue),
        session_run("r5", IfBusy::Reject),
        full,
        items_twin("r1", "h1"),
    ];
    let reply = world.enqueue(&items, true).await.unwrap();
    let (r1, r4) = (items[0].run.clone(), items[3].run.clone());
    let status = RunStatus::Queued;
    let expected = [
        created(&items[0]),
        Enqueued::Existing { run: r1.clone(), status },
        Enqueued::KeyConflict { run: r1.clone() },
        created(&items[3]),
        Enqueued::SessionBusy { run: r4, question: None },
        Enqueued::QueueFull { depth: 2 },
        Enqueued::Repeated { run: r1, status },
    ];
    assert_eq!(reply.items, expected);
}

/// A repeated batch answers every item as repeated.
pub async fn repeated_batch_has_one_effect(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let items = [new_run("r1"), new_run("r2")];
    world.enqueue(&items, false).await.unwrap();
    let reply = world.enqueue(&items, false).await.unwrap();
    let status = RunStatus::Queued;
    let repeated = |item: &NewRun| Enqueued::Repeated { run: item.run.clone(), status };
    assert_eq!(reply.items, items.iter().map(repeated).collect::<Vec<_>>());
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["r1", "r2"]);
}

fn items_twin(name: &str, payload_hash: &str) -> NewRun {
    NewRun { payload_hash: payload_hash.to_owned(), ..new_run(name) }
}

fn other_request(name: &str) -> NewRun {
    NewRun { request: "another".parse().unwrap(), ..new_run(name) }
}

fn created(item: &NewRun) -> Enqueued {
    Enqueued::Created { run: item.run.clone(), status: RunStatus::Queued }
}
