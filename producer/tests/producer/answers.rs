//! Several answers of one call: all are taken, or none, and the one to blame is named.

use holdpoint_graph::{Event, Interrupt, RunStatus, limits::ANSWERS_MAX};
use holdpoint_producer::{ProducerError, SignalOptions, SignalOutcome};
use serde_json::{Value, json};

use crate::world::{Owner, World, code, question, run};

/// A run that is parked at a gate, at a question for anything, and at one that needs two votes.
async fn parked(world: &World) -> Owner {
    let mut owner = world.begun("r1").await;
    let task = owner.task();
    let gate = question("gate", &task, "gate");
    let any = Interrupt { schema: None, gate: None, ..question("any", &task, "") };
    let board = Interrupt { quorum: 2, gate: None, ..question("board", &task, "") };
    for interrupt in [gate, any, board] {
        owner.event(Event::InterruptOpened { interrupt: Box::new(interrupt) });
    }
    owner.park().await;
    owner
}

fn by_ann<const N: usize>(answers: [(&str, Value); N]) -> Vec<SignalOptions> {
    SignalOptions::run("r1").by("ann").each(answers)
}

fn yes() -> Value {
    json!({ "approve": true })
}

#[tokio::test]
async fn several_answers_are_taken_in_one_call_and_again_with_its_key() {
    let world = World::new().await;
    parked(&world).await;
    let keyed = SignalOptions::run("r1").by("ann").key("k1");
    let answers = keyed.each([("gate", yes()), ("any", Value::Null), ("board", yes())]);
    let first = world.producer.signal_all(&answers).await.unwrap();
    let told = |one: &holdpoint_producer::Signalled| {
        (one.interrupt.as_ref().unwrap().to_string(), one.outcome)
    };
    let expect = [
        ("gate".to_owned(), SignalOutcome::Delivered),
        ("any".to_owned(), SignalOutcome::Delivered),
        ("board".to_owned(), SignalOutcome::Voted),
    ];
    assert_eq!(first.iter().map(told).collect::<Vec<_>>(), expect);
    assert_eq!(world.status(&run("r1")).await, RunStatus::Queued);
    assert_eq!(world.producer.signal_all(&answers).await.unwrap(), first, "while they wait");
    let other = keyed.each([("gate", json!({ "approve": false })), ("any", Value::Null)]);
    assert_eq!(code(world.producer.signal_all(&other).await), "E_IDEMPOTENCY_CONFLICT");
    let more = keyed.each([("gate", yes()), ("late", Value::Null)]);
    assert_eq!(code(world.producer.signal_all(&more).await), "E_IDEMPOTENCY_CONFLICT");

    let mut owner = world.claim().await;
    owner.take_answer().await;
    let again = world.producer.signal_all(&answers).await.unwrap();
    assert_eq!(again, first, "when some wait and one is taken");
    owner.take_answer().await;
    assert_eq!(world.producer.signal_all(&answers).await.unwrap(), first);
}

#[tokio::test]
async fn one_bad_answer_is_named_and_none_is_taken() {
    let world = World::new().await;
    parked(&world).await;
    let no = json!({ "approve": "no" });
    let large = Value::from("x".repeat(256 * 1024));
    for (bad, expect, field) in [
        (("gate", no), "E_SCHEMA", "answer/approve"),
        (("any", large), "E_TOO_LARGE", "answer"),
        (("never", yes()), "E_NOT_FOUND", "interrupt"),
        (("no id", yes()), "E_ID", "interrupt"),
    ] {
        for answers in
            [by_ann([bad.clone(), ("board", yes())]), by_ann([("board", yes()), bad.clone()])]
        {
            let error = world.producer.signal_all(&answers).await.unwrap_err();
            assert_eq!((error.code().as_str(), error.field()), (expect, field));
            let ProducerError::OneOfSeveral { to, .. } = &error else { panic!("{error:?}") };
            assert_eq!(to, bad.0);
            assert!(error.to_string().contains(bad.0), "{error}");
        }
    }
    let bound = by_ann([("gate", yes())]).remove(0).args_hash("other");
    let answers = [bound, by_ann([("any", yes())]).remove(0)];
    assert_eq!(code(world.producer.signal_all(&answers).await), "E_ARGS_CHANGED");
    let twice = by_ann([("gate", yes()), ("any", yes()), ("gate", yes())]);
    assert_eq!(code(world.producer.signal_all(&twice).await), "E_SCHEMA");
    let by_gate = SignalOptions::run("r1").gate("gate").approve();
    let twice = [by_gate, by_ann([("gate", yes())]).remove(0)];
    assert_eq!(code(world.producer.signal_all(&twice).await), "E_SCHEMA");
    assert_eq!(code(world.producer.signal_all(&[]).await), "E_SCHEMA");
    let runs = [SignalOptions::run("r1"), SignalOptions::run("r2")].map(|to| to.approve());
    assert_eq!(code(world.producer.signal_all(&runs).await), "E_SCHEMA");
    let many = vec![SignalOptions::run("r1").approve(); ANSWERS_MAX + 1];
    assert_eq!(code(world.producer.signal_all(&many).await), "E_TOO_LARGE");
    assert_eq!(world.store.inbox(&run("r1")).await.unwrap(), []);
    assert_eq!(world.status(&run("r1")).await, RunStatus::Parked);
}

#[tokio::test]
async fn a_question_that_was_decided_lets_none_of_the_others_be_answered() {
    let world = World::new().await;
    parked(&world).await;
    world.producer.signal_all(&by_ann([("gate", yes()), ("board", yes())])).await.unwrap();
    let bob = SignalOptions::run("r1").by("bob").each([("any", yes()), ("gate", yes())]);
    let error = world.producer.signal_all(&bob).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_DECIDED");
    assert!(error.to_string().contains("ann"), "{error}");
    let again = by_ann([("any", yes()), ("board", yes())]);
    assert_eq!(code(world.producer.signal_all(&again).await), "E_VOTED");
    let bob = SignalOptions::session("r1").by("bob").each([("any", yes()), ("board", yes())]);
    let told = world.producer.signal_all(&bob).await.unwrap();
    assert_eq!(told[1].outcome, SignalOutcome::Delivered, "the second vote decides");
}
