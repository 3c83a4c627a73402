//! New runs from old ones.

use holdpoint_graph::{End, Event, Reason, ReasonCode, RunPayload, RunStatus, SessionId};
use holdpoint_producer::{ForkOptions, ProducerError, RunRequest};
use serde_json::json;

use crate::world::{World, code, print, run};

#[tokio::test]
async fn a_fork_begins_at_a_checkpoint_and_the_source_stays() {
    let world = World::new().await;
    let request = RunRequest::new("g").run("r1").input(json!({ "n": 1 })).tag("team", "blue");
    world.producer.enqueue(&request).await.unwrap();
    let mut owner = world.claim().await;
    owner.begin().await;
    owner.step("a", "b").await;
    owner.step("b", "c").await;
    let before = world.producer.get(&run("r1")).await.unwrap();
    let at_seq = before.seq.unwrap() - 1;

    let edit = Some(json!({ "n": 2 }));
    let options = ForkOptions { at_seq, edit, ..ForkOptions::default() };
    let receipt = world.producer.fork(&run("r1"), &options).await.unwrap();
    assert_eq!(receipt.session, receipt.run.as_str());
    let head = world.store.head(&receipt.run).await.unwrap().unwrap();
    assert_eq!((head.fingerprint, head.tags), (Some(print("1")), vec!["team=blue".to_owned()]));
    let payload = world.store.payload(&receipt.run).await.unwrap().unwrap();
    let start = RunPayload::decode(&payload).unwrap().checkpoint.unwrap();
    assert_eq!(start.progress.state().clone().into_json(), json!({ "n": 1, "a": 1 }));
    assert_eq!(
        (start.origin.run, start.origin.seq, start.origin.is_replay),
        (run("r1"), at_seq, false)
    );
    assert_eq!(start.patches.len(), 1);
    assert_eq!(world.producer.get(&run("r1")).await.unwrap(), before);

    let replay = world.producer.replay(&run("r1"), at_seq).await.unwrap();
    let payload = world.store.payload(&replay.run).await.unwrap().unwrap();
    let start = RunPayload::decode(&payload).unwrap().checkpoint.unwrap();
    assert!(start.origin.is_replay && start.patches.is_empty());
}

#[tokio::test]
async fn there_must_be_something_to_begin_at() {
    let world = World::new().await;
    world.enqueued("r1").await;
    assert_eq!(code(world.producer.replay(&run("r1"), 0).await), "E_NO_CHECKPOINT");
    let mut owner = world.claim().await;
    owner.begin().await;
    // Event 0 is the claim.
    assert_eq!(code(world.producer.replay(&run("r1"), 0).await), "E_NO_CHECKPOINT");
    assert_eq!(code(world.producer.replay(&run("r1"), 99).await), "E_NO_CHECKPOINT");
    assert_eq!(code(world.producer.replay(&run("no"), 0).await), "E_NOT_FOUND");
    let options = ForkOptions { at_seq: 1, edit: Some(json!(7)), ..ForkOptions::default() };
    assert_eq!(code(world.producer.fork(&run("r1"), &options).await), "E_TYPE");
}

#[tokio::test]
async fn a_session_goes_on_from_where_it_is() {
    let world = World::new().await;
    let session = |id: &str| SessionId::new(id).unwrap();
    assert_eq!(code(world.producer.resume(&session("s"), "ann").await), "E_NO_CHECKPOINT");
    let request = RunRequest::new("g").session("s").run("r1");
    world.producer.enqueue(&request).await.unwrap();
    let resumed = world.producer.resume(&session("s"), "ann").await.unwrap();
    assert_eq!((resumed.run.clone(), resumed.status), (run("r1"), RunStatus::Queued));

    let mut owner = world.claim().await;
    owner.begin().await;
    owner.ask("q1").await;
    owner.park().await;
    let ProducerError::RunActive { why, .. } =
        world.producer.resume(&session("s"), "ann").await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    assert!(why.ends_with("q1"), "{why}");
    // A run's own id is the name of its unnamed session; of a named one it is not.
    assert_eq!(code(world.producer.resume(&session("r1"), "ann").await), "E_NO_CHECKPOINT");

    let mut owner = world.begun("r2").await;
    let code = ReasonCode::StepLimit;
    let reason = Reason { code, message: String::new(), node: None };
    owner.finish(Event::RunFailed { reason }, End::Failed(code)).await;
    let resumed = world.producer.resume(&session("r2"), "ann").await.unwrap();
    assert!(resumed.is_redriven);
    let mut owner = world.claim().await;
    owner.complete().await;
    let resumed = world.producer.resume(&session("r2"), "ann").await.unwrap();
    assert_eq!((resumed.status, resumed.is_redriven), (RunStatus::Completed, false));
}
