//! One run enters the store: round trips, repeats, keys, queue depth, times.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, RunStatus};

use super::{
    Bench,
    world::{HOUR_MS, World, new_run, structure},
};
use crate::{Enqueued, NewRun, When};

/// What was enqueued comes back: the payload byte for byte, and every field of the head.
pub async fn payload_and_head_come_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let item = NewRun {
        payload: (0..=255).chain([0, 10, 13, 255]).collect(),
        priority: 9,
        fingerprint: Some(structure("v1")),
        session: Some("s1".parse().unwrap()),
        tags: vec!["a=1".to_owned(), "b=x:y z".to_owned()],
        expires: Some(When::In(HOUR_MS)),
        deadline: Some(When::At(4_000_000_000_000)),
        ..new_run("r1")
    };
    let before_ms = world.now_ms().await.unwrap();
    let said = world.create(&item).await;
    let status = RunStatus::Queued;
    assert_eq!(said, Enqueued::Created { run: item.run.clone(), status });

    assert_eq!(world.payload(&item.run).await.unwrap(), Some(item.payload.clone()));
    let head = world.head_of(&item.run).await;
    assert_eq!((&head.run, &head.graph, &head.queue), (&item.run, &item.graph, &item.queue));
    assert_eq!((&head.session, &head.fingerprint), (&item.session, &item.fingerprint));
    assert_eq!((head.status(), head.priority, &head.tags), (status, 9, &item.tags));
    assert_eq!((head.seq, head.hash.0.as_str(), head.snapshot_seq), (0, "", 0));
    assert_eq!((head.tail_bytes, head.epoch, head.claims), (0, 0, 0));
    assert_eq!((head.lost_in_row, head.lost_in_life, head.losses.len()), (0, 0, 0));
    assert_eq!((head.cancel, &head.payload_hash), (None, &item.payload_hash));
    assert!(head.created_at_ms >= before_ms, "the store's time is kept");
    assert_eq!(head.updated_at_ms, head.created_at_ms);
    assert_eq!((head.started_at_ms, head.finished_at_ms), (None, None));
    assert_eq!(head.expires_at_ms, Some(head.created_at_ms + HOUR_MS));
    assert_eq!(head.deadline_ms, Some(4_000_000_000_000));
}

/// An empty payload is a payload.
pub async fn empty_payload_comes_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&NewRun { payload: Vec::new(), ..new_run("r1") }).await;
    assert_eq!(world.payload(&run).await.unwrap(), Some(Vec::new()));
    assert_eq!(world.claim_next().await.payload, b"");
}

/// What is not there is none, never an error.
pub async fn unknown_run_is_none(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = new_run("r1").run;
    assert!(world.head(&run).await.unwrap().is_none());
    assert!(world.payload(&run).await.unwrap().is_none());
    assert!(world.journal(&run, 0, 10).await.unwrap().is_none());
    assert!(world.checkpoint(&run).await.unwrap().is_none());
    assert_eq!(world.inbox(&run).await.unwrap(), []);
    assert_eq!(world.partials(&run, 0).await.unwrap(), []);
    assert_eq!(world.start_now(&run).await.unwrap(), None);
    assert!(world.session(&"s1".parse().unwrap()).await.unwrap().is_none());
    assert_eq!(world.delete_session(&"s1".parse().unwrap()).await.unwrap(), None);
}

/// A repeat with the same request id stores nothing and says the state of now.
pub async fn repeated_request_has_one_effect(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let item = new_run("r1");
    world.created(&item).await;
    let (run, status) = (item.run.clone(), RunStatus::Queued);
    assert_eq!(world.create(&item).await, Enqueued::Repeated { run: run.clone(), status });

    let claimed = world.claim_next().await;
    let status = RunStatus::Running;
    assert_eq!(world.create(&item).await, Enqueued::Repeated { run: run.clone(), status });
    assert!(world.claim_up_to(1).await.is_empty(), "the repeat put nothing into the lane");

    world.end(&claimed, End::Completed).await;
    let status = RunStatus::Completed;
    assert_eq!(world.create(&item).await, Enqueued::Repeated { run, status });
    assert!(world.claim_up_to(1).await.is_empty());
}

/// A run id is taken once; a foreign request changes nothing of the run.
pub async fn taken_run_id_is_refused(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&new_run("r1")).await;
    let other = NewRun {
        request: "another".parse().unwrap(),
        payload: b"other".to_vec(),
        priority: 9,
        ..new_run("r1")
    };
    assert_eq!(world.create(&other).await, Enqueued::RunExists);
    // With a key that knows the work, the answer is the key's.
    let keyed = world.created(&keyed("r2", "order-7", "h1")).await;
    let again = NewRun { request: "again".parse().unwrap(), ..self::keyed("r2", "order-7", "h1") };
    let existing = world.create(&again).await;
    assert!(matches!(existing, Enqueued::Existing { run, .. } if run == keyed));
    assert_eq!(world.payload(&run).await.unwrap(), Some(new_run("r1").payload));
    assert_eq!(world.head_of(&run).await.priority, 5);
}

/// The same key and payload is the same run, also after that run's end.
pub async fn key_finds_its_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let first = keyed("r1", "order-7", "h1");
    let run = world.created(&first).await;
    let again = keyed("r2", "order-7", "h1");
    let status = RunStatus::Queued;
    assert_eq!(world.create(&again).await, Enqueued::Existing { run: run.clone(), status });

    let claimed = world.claim_next().await;
    world.end(&claimed, End::Completed).await;
    let status = RunStatus::Completed;
    assert_eq!(world.create(&again).await, Enqueued::Existing { run, status });
    assert!(world.head(&again.run).await.unwrap().is_none(), "the second was not stored");
}

/// The same key with another payload is a conflict that names the run.
pub async fn key_with_other_payload_conflicts(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&keyed("r1", "order-7", "h1")).await;
    let other = keyed("r2", "order-7", "h2");
    assert_eq!(world.create(&other).await, Enqueued::KeyConflict { run: run.clone() });
    let claimed = world.claim_next().await;
    world.end(&claimed, End::Cancelled).await;
    assert_eq!(world.create(&other).await, Enqueued::KeyConflict { run });
    assert!(world.head(&other.run).await.unwrap().is_none());
}

/// The repeat of the request is recognised before its own key is.
pub async fn repeat_wins_over_its_key(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let item = keyed("r1", "order-7", "h1");
    let run = world.created(&item).await;
    let status = RunStatus::Queued;
    assert_eq!(world.create(&item).await, Enqueued::Repeated { run, status });
}

/// Producers that race with one key make one run; all others are told of it.
pub async fn racing_keys_make_one_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let send = |number: u32| {
        let (store, item) = (world.store.clone(), keyed(&format!("r{number}"), "order-7", "h1"));
        tokio::spawn(async move { store.enqueue(&[item], false).await.unwrap().items.remove(0) })
    };
    let (mut created, mut existing) = (Vec::new(), Vec::new());
    for sending in (0..12).map(send).collect::<Vec<_>>() {
        match sending.await.unwrap() {
            Enqueued::Created { run, .. } => created.push(run),
            Enqueued::Existing { run, .. } => existing.push(run),
            other @ (Enqueued::Repeated { .. }
            | Enqueued::KeyConflict { .. }
            | Enqueued::RunExists
            | Enqueued::SessionBusy { .. }
            | Enqueued::SessionGraph { .. }
            | Enqueued::QueueFull { .. }) => panic!("{other:?}"),
        }
    }
    assert_eq!((created.len(), existing.len()), (1, 11));
    assert!(existing.iter().all(|run| *run == created[0]));
    assert_eq!(world.claim_up_to(99).await.len(), 1);
}

/// A full queue refuses with its depth; scheduled runs count, running ones and other queues do not.
pub async fn queue_depth_is_kept(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let limited = |name: &str| NewRun { queue_depth_max: 2, ..new_run(name) };
    world.created(&limited("r1")).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..limited("r2") }).await;
    assert_eq!(world.create(&limited("r3")).await, Enqueued::QueueFull { depth: 2 });
    assert!(world.head(&new_run("r3").run).await.unwrap().is_none());
    world.created(&NewRun { queue: "other".parse().unwrap(), ..limited("r4") }).await;

    world.claim_next().await;
    world.created(&limited("r5")).await;
    assert_eq!(world.create(&limited("r6")).await, Enqueued::QueueFull { depth: 2 });
}

/// A later start is scheduled until then; a start that has passed is queued at once.
pub async fn start_time_decides_the_state(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let item = NewRun { start: When::In(HOUR_MS), ..new_run("later") };
    let said = world.create(&item).await;
    let status = RunStatus::Scheduled;
    assert_eq!(said, Enqueued::Created { run: item.run.clone(), status });
    let head = world.head_of(&item.run).await;
    assert_eq!(head.due_at_ms(), Some(head.created_at_ms + HOUR_MS));
    let claims = world.claim(&super::world::claim_request("w1", 5)).await.unwrap();
    assert!(claims.runs.is_empty(), "it is not due");
    assert_eq!(claims.next_due_ms, head.due_at_ms(), "a claim of nothing says what comes next");

    let past = NewRun { start: When::At(1_000), ..new_run("past") };
    let status = RunStatus::Queued;
    assert_eq!(world.create(&past).await, Enqueued::Created { run: past.run.clone(), status });
    assert_eq!(world.claim_next().await.head.run, past.run);
}

/// `start_now` makes a scheduled run claimable, and nothing else.
pub async fn start_now_makes_due(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("r1") }).await;
    assert_eq!(world.start_now(&run).await.unwrap(), Some(true));
    assert_eq!(world.status_of(&run).await, RunStatus::Queued);
    assert_eq!(world.start_now(&run).await.unwrap(), Some(false), "it is queued already");
    let claimed = world.claim_next().await;
    assert_eq!(claimed.head.run, run);
    assert_eq!(world.start_now(&run).await.unwrap(), Some(false));
}

fn keyed(name: &str, key: &str, payload_hash: &str) -> NewRun {
    NewRun {
        key: Some(key.parse().unwrap()),
        payload_hash: payload_hash.to_owned(),
        ..new_run(name)
    }
}
