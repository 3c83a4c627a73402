//! What people do to runs.

use holdpoint_graph::{End, Event, Reason, ReasonCode, RunStatus};
use holdpoint_producer::{CancelOutcome, ProducerError, RunRequest};
use serde_json::json;

use crate::world::{World, code, print, run};

async fn failed(world: &World, id: &str) {
    let mut owner = world.begun(id).await;
    let reason = Reason {
        code: ReasonCode::NodeError,
        message: "no luck".to_owned(),
        node: Some("a".to_owned()),
    };
    owner.finish(Event::RunFailed { reason }, End::Failed(ReasonCode::NodeError)).await;
}

#[tokio::test]
async fn a_run_is_cancelled_or_its_worker_is_told() {
    let world = World::new().await;
    let queued = world.enqueued("r1").await;
    for _ in 0..2 {
        let said = world.producer.cancel(&queued, "ann").await.unwrap();
        assert_eq!(said, CancelOutcome::Cancelled);
    }
    let (parked, _) = world.parked("r2").await;
    assert_eq!(world.producer.cancel(&parked, "ann").await.unwrap(), CancelOutcome::Cancelled);
    let view = world.producer.get(&parked).await.unwrap();
    assert_eq!((view.status, view.interrupts.len()), (RunStatus::Cancelled, 0));

    let mut owner = world.begun("r3").await;
    for _ in 0..2 {
        let said = world.producer.cancel(&run("r3"), "ann").await.unwrap();
        assert_eq!(said, CancelOutcome::Cancelling);
    }
    assert!(world.producer.get(&run("r3")).await.unwrap().is_cancelling);
    owner.finish(Event::RunCancelled { by: "ann".to_owned() }, End::Cancelled).await;

    world.begun("r4").await.complete().await;
    assert_eq!(code(world.producer.cancel(&run("r4"), "ann").await), "E_RUN_FINAL");
    assert_eq!(code(world.producer.cancel(&run("no"), "ann").await), "E_NOT_FOUND");
}

#[tokio::test]
async fn only_a_failed_run_is_redriven_and_twice_is_once() {
    let world = World::new().await;
    failed(&world, "r1").await;
    let id = run("r1");
    assert_eq!(code(world.producer.redrive(&id, Some(0), "ann").await), "E_RANGE");
    for _ in 0..2 {
        let status = world.producer.redrive(&id, Some(7), "ann").await.unwrap();
        assert_eq!(status, RunStatus::Queued);
    }
    let events = world.producer.events(&id, 0).await.unwrap();
    let redriven = events.iter().filter(|e| matches!(e.event, Event::Redriven { .. }));
    assert_eq!(redriven.count(), 1);
    let _owner = world.claim().await;
    let ProducerError::NotFailed { status, .. } =
        world.producer.redrive(&id, None, "ann").await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    assert_eq!(status, RunStatus::Running);
}

#[tokio::test]
async fn a_parked_run_is_edited_by_whoever_saw_its_newest_event() {
    let world = World::new().await;
    let (id, _) = world.parked("r1").await;
    let seen = world.producer.get(&id).await.unwrap().seq.unwrap();
    let update = json!({ "a": { "b": 1 } });
    assert_eq!(code(world.producer.edit(&id, &json!([]), seen, "ann").await), "E_TYPE");
    assert_eq!(code(world.producer.edit(&id, &update, seen - 1, "ann").await), "E_SEQ");
    let seq = world.producer.edit(&id, &update, seen, "ann").await.unwrap();
    assert_eq!(seq, seen + 1);
    assert_eq!(code(world.producer.edit(&id, &update, seen, "ann").await), "E_SEQ");
    let view = world.producer.get(&id).await.unwrap();
    assert_eq!((view.seq, view.status), (Some(seq), RunStatus::Parked));
    assert_eq!(view.state.into_json(), update);
    let large = json!({ "a": "x".repeat(5 << 20) });
    assert_eq!(code(world.producer.edit(&id, &large, seq, "ann").await), "E_TOO_LARGE");

    world.begun("r2").await;
    let seen = world.producer.get(&run("r2")).await.unwrap().seq.unwrap();
    assert_eq!(code(world.producer.edit(&run("r2"), &update, seen, "ann").await), "E_RUN_ACTIVE");
}

#[tokio::test]
async fn a_scheduled_run_is_started_now() {
    let world = World::new().await;
    let later = RunRequest::new("g").run("r1").delay(std::time::Duration::from_secs(600));
    world.producer.enqueue(&later).await.unwrap();
    for _ in 0..2 {
        assert_eq!(world.producer.start_now(&run("r1")).await.unwrap(), RunStatus::Queued);
    }
    world.parked("r2").await;
    let _r1 = world.status(&run("r1")).await;
    assert_eq!(code(world.producer.start_now(&run("no")).await), "E_NOT_FOUND");
}

#[tokio::test]
async fn a_run_moves_to_another_version() {
    let world = World::new().await;
    let (id, _) = world.parked("r1").await;
    let (one, two, three) = (print("1"), print("2"), print("3"));
    assert_eq!(code(world.producer.migrate(&id, &two, &three, "ann").await), "E_GRAPH_MISMATCH");
    for _ in 0..2 {
        let status = world.producer.migrate(&id, &one, &two, "ann").await.unwrap();
        assert_eq!(status, RunStatus::Parked);
    }
    assert_eq!(world.producer.get(&id).await.unwrap().fingerprint, Some(two.clone()));
    world.begun("r2").await;
    assert_eq!(code(world.producer.migrate(&run("r2"), &one, &two, "ann").await), "E_RUN_ACTIVE");
}

#[tokio::test]
async fn a_session_is_deleted_when_nothing_of_it_is_open() {
    let world = World::new().await;
    for id in ["r1", "r2"] {
        let request = RunRequest::new("g").session("s").run(id);
        world.producer.enqueue(&request).await.unwrap();
    }
    let session = "s".parse().unwrap();
    assert_eq!(code(world.producer.delete_session(&session, None).await), "E_SESSION_BUSY");
    world.producer.delete_session(&session, Some("ann")).await.unwrap();
    assert_eq!(code(world.producer.session(&session).await), "E_NOT_FOUND");
    assert_eq!(code(world.producer.delete_session(&session, None).await), "E_NOT_FOUND");
}
