//! Answers: exactly one is taken, and every other one is told why not.

use holdpoint_graph::{End, Event, RunStatus};
use holdpoint_producer::{ProducerError, SignalOptions, SignalOutcome};
use serde_json::json;

use crate::world::{World, code, json_of, question};

#[tokio::test]
async fn an_answer_is_delivered_once() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let approve = SignalOptions::run("r1").approve().by("ann");
    let said = json_of(&world.producer.signal(&approve).await.unwrap());
    assert_eq!(said["run"], "r1");
    assert_eq!(said["interrupt"], question.as_str());
    assert_eq!(said["outcome"], "delivered");
    assert_eq!(said["decided_by"], "ann");
    assert!(said["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(world.status(&run).await, RunStatus::Queued);

    let reject = SignalOptions::run("r1").interrupt(&question).reject().by("bob");
    let decided = |error: ProducerError| {
        let ProducerError::Decided { decision, .. } = error else { panic!("{error:?}") };
        assert_eq!((decision.answer, decision.by.as_str()), (json!({ "approve": true }), "ann"));
    };
    // First while the answer waits, then from the journal, then after the end.
    decided(world.producer.signal(&reject).await.unwrap_err());
    let mut owner = world.claim().await;
    owner.take_answer().await;
    decided(world.producer.signal(&reject).await.unwrap_err());
    owner.complete().await;
    let ProducerError::RunFinal { status, decision, .. } =
        world.producer.signal(&reject).await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    assert_eq!((status, decision.unwrap().by.as_str()), (RunStatus::Completed, "ann"));
}

#[tokio::test]
async fn an_answer_must_fit_and_be_of_some_size() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let to = || SignalOptions::run("r1").interrupt(&question);
    let schema = world.producer.signal(&to().answer(json!({ "approve": 7 }))).await.unwrap_err();
    assert_eq!((schema.code().as_str(), schema.field()), ("E_SCHEMA", "answer/approve"));
    assert_eq!(code(world.producer.signal(&to()).await), "E_SCHEMA");
    let large = to().answer("x".repeat(256 * 1024));
    assert_eq!(code(world.producer.signal(&large).await), "E_TOO_LARGE");
    let comment = to().approve().comment("x".repeat(5_000));
    assert_eq!(code(world.producer.signal(&comment).await), "E_TOO_LARGE");
    let mut deep = json!(1);
    for _ in 0..65 {
        deep = json!([deep]);
    }
    assert_eq!(code(world.producer.signal(&to().answer(deep)).await), "E_DEPTH");
    let shown = to().approve().args_hash("another");
    let ProducerError::ArgsChanged { args_hash, .. } =
        world.producer.signal(&shown).await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    assert_eq!(args_hash, "hash");
    assert_eq!(world.status(&run).await, RunStatus::Parked);
}

#[tokio::test]
async fn what_cannot_be_addressed_is_refused() {
    let world = World::new().await;
    assert_eq!(
        code(world.producer.signal(&SignalOptions::run("no").approve()).await),
        "E_NOT_FOUND"
    );
    let session = SignalOptions::session("no").approve();
    assert_eq!(code(world.producer.signal(&session).await), "E_NOT_FOUND");
    let mut owner = world.begun("r1").await;
    let only = SignalOptions::run("r1").approve();
    assert_eq!(code(world.producer.signal(&only).await), "E_NO_QUESTION");
    let never = SignalOptions::run("r1").interrupt("never").approve();
    assert_eq!(code(world.producer.signal(&never).await), "E_NOT_FOUND");

    let task = owner.task();
    for id in ["q1", "q2"] {
        owner.event(Event::InterruptOpened { interrupt: Box::new(question(id, &task, id)) });
    }
    owner.park().await;
    let ProducerError::Ambiguous { open, .. } = world.producer.signal(&only).await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    let open: Vec<_> = open.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    assert_eq!(open, [("q1", "Go on?"), ("q2", "Go on?")]);
    assert!(world.producer.signal(&only.clone().gate("q2")).await.is_ok());
    let mut owner = world.claim().await;
    owner.take_answer().await;
    let event = Event::RunCancelled { by: "ann".to_owned() };
    owner.finish(event, End::Cancelled).await;
    assert_eq!(code(world.producer.signal(&only).await), "E_RUN_FINAL");
}

#[tokio::test]
async fn a_question_that_closed_is_stale() {
    let world = World::new().await;
    let mut owner = world.begun("r1").await;
    owner.ask("q1").await;
    // The task ends although it asked: its question closes unanswered.
    owner.step("a", "b").await;
    let late = SignalOptions::run("r1").interrupt("q1").approve();
    assert_eq!(code(world.producer.signal(&late).await), "E_STALE_INTERRUPT");
}

#[tokio::test]
async fn an_early_answer_is_kept_for_a_gate_that_exists() {
    let world = World::new().await;
    world.enqueued("r1").await;
    let early = || SignalOptions::run("r1").gate("gate");
    let kept = world.producer.signal(&early().approve().key("k1")).await.unwrap();
    assert_eq!((kept.interrupt, kept.outcome), (None, SignalOutcome::Kept));
    assert_eq!(code(world.producer.signal(&early().reject()).await), "E_DECIDED");
    world.publish().await;
    let bad = early().answer("yes");
    let producer = holdpoint_producer::Producer::new(world.store.clone());
    assert_eq!(code(producer.signal(&bad).await), "E_SCHEMA");
    let slip = producer.signal(&SignalOptions::run("r1").gate("gat").approve()).await.unwrap_err();
    assert_eq!(slip.to_string(), "the graph g has no gate gat, did you mean gate?");
}

/// A second answer by the gate's name came a moment after the first had been taken, and was told
/// that it is kept: for an opening that never came.
#[tokio::test]
async fn a_gate_that_was_decided_keeps_no_answer() {
    let world = World::new().await;
    world.parked("r1").await;
    let to_gate = || SignalOptions::run("r1").gate("gate");
    world.producer.signal(&to_gate().approve().by("ann")).await.unwrap();
    let mut owner = world.claim().await;
    owner.take_answer().await;
    let ProducerError::Decided { interrupt, decision, .. } =
        world.producer.signal(&to_gate().reject().by("bob")).await.unwrap_err()
    else {
        panic!("it was to be refused otherwise")
    };
    assert_eq!((interrupt.unwrap().as_str(), decision.by.as_str()), ("r1-q1", "ann"));
    assert_eq!(world.store.inbox(&owner.claimed.head.run).await.unwrap(), []);
}

#[tokio::test]
async fn a_repeated_key_has_one_effect_and_never_meets_the_next_question() {
    let world = World::new().await;
    world.parked("r1").await;
    let keyed = SignalOptions::run("r1").approve().key("k1");
    let first = world.producer.signal(&keyed).await.unwrap();
    assert_eq!(world.producer.signal(&keyed).await.unwrap(), first);
    assert_eq!(
        code(world.producer.signal(&keyed.clone().reject()).await),
        "E_IDEMPOTENCY_CONFLICT"
    );
    let mut owner = world.claim().await;
    owner.take_answer().await;
    owner.step("a", "a").await;
    owner.ask("q2").await;
    owner.park().await;
    assert_eq!(world.producer.signal(&keyed).await.unwrap(), first);
    assert_eq!(code(world.producer.signal(&keyed.reject()).await), "E_IDEMPOTENCY_CONFLICT");
    assert_eq!(world.producer.get(&first.run).await.unwrap().interrupts.len(), 1);
}

#[tokio::test]
async fn a_session_stands_for_its_active_run() {
    let world = World::new().await;
    world.parked("r1").await;
    let own = world.producer.signal(&SignalOptions::session("r1").approve()).await.unwrap();
    assert_eq!(own.run.as_str(), "r1");
}

#[tokio::test]
async fn a_gate_that_needs_votes_takes_none_before_it_is_open() {
    let world = World::new().await;
    world.publish().await;
    world.enqueued("r1").await;
    let early = SignalOptions::run("r1").gate("board").approve();
    let said = world.producer.signal(&early).await.unwrap_err();
    assert_eq!(said.code().as_str(), "E_NO_QUESTION");
    assert!(said.to_string().contains("needs 2 votes"), "{said}");
    let kept = SignalOptions::run("r1").gate("gate").approve();
    assert_eq!(world.producer.signal(&kept).await.unwrap().outcome, SignalOutcome::Kept);
}
