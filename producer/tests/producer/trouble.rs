//! A store that does not answer: every call has one effect, or an error that says what to repeat.

use std::{sync::Arc, time::Duration};

use holdpoint_producer::{
    Producer, ProducerError, RunRequest, SignalOptions, SignalOutcome, Until,
};
use holdpoint_testkit::{Fault, FaultyStore, until_async};
use serde_json::json;

use crate::world::{World, code, run};

fn faulty(
    world: &World,
    plan: impl FnMut(&'static str, u64) -> Fault + Send + 'static,
) -> (Arc<FaultyStore>, Producer) {
    let store = Arc::new(FaultyStore::new(world.store.clone(), plan));
    let producer = Producer::new(store.clone());
    (store, producer.with_patience(Duration::from_secs(2)))
}

/// The first call of `name` meets `fault`.
fn first(name: &'static str, fault: Fault) -> impl FnMut(&'static str, u64) -> Fault + Send {
    move |called, number| if called == name && number == 1 { fault } else { Fault::Pass }
}

#[tokio::test]
async fn a_lost_reply_is_asked_for_again() {
    for fault in [Fault::Refuse, Fault::LoseReply] {
        let world = World::new().await;
        let (store, producer) = faulty(&world, first("enqueue", fault));
        let receipt = producer.enqueue(&RunRequest::new("g").run("r1")).await.unwrap();
        assert!(receipt.created, "{fault:?}");
        assert_eq!(store.count("enqueue"), 2);
        let (_, producer) = faulty(&world, first("append", fault));
        producer.cancel(&receipt.run, "ann").await.unwrap();
        assert_eq!(world.producer.events(&receipt.run, 0).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_names_its_request() {
    let world = World::new().await;
    let (_, producer) = faulty(&world, |called, number| match (called, number) {
        ("enqueue", 1) => Fault::LoseReply,
        ("enqueue", _) => Fault::Refuse,
        _ => Fault::Pass,
    });
    // Refused afterwards or not: the first outcome stays unknown.
    let producer = producer.with_patience(Duration::from_millis(50));
    let error = producer.enqueue(&RunRequest::new("g")).await.unwrap_err();
    let ProducerError::UnknownOutcome { request, .. } = error else { panic!("{error:?}") };
    let again = RunRequest::new("g").request(request.as_str());
    let receipt = world.producer.enqueue(&again).await.unwrap();
    assert_eq!(receipt.run.as_str(), request.as_str());
    let page = world.producer.list(&Default::default(), None, 10).await.unwrap();
    assert_eq!(page.rows.len(), 1);
}

#[tokio::test]
async fn a_store_that_is_away_is_told_after_the_patience() {
    let world = World::new().await;
    let (_, producer) = faulty(&world, |called, _| match called {
        "now_ms" | "head" => Fault::Refuse,
        _ => Fault::Pass,
    });
    let producer = producer.with_patience(Duration::from_millis(50));
    assert_eq!(code(producer.enqueue(&RunRequest::new("g")).await), "E_STORE_UNAVAILABLE");
    let soon = Some(Duration::ZERO);
    let waited = producer.wait(&run("r1"), Until::Terminal, soon).await;
    assert_eq!(code(waited), "E_STORE_UNAVAILABLE");
}

/// The answer was taken and its run had ended before the producer could ask what became of it.
#[tokio::test]
async fn an_answer_that_was_taken_is_not_called_too_late() {
    let world = World::new().await;
    world.parked("r1").await;
    let (store, producer) = faulty(&world, |called, number| match (called, number) {
        ("signal", 1) => Fault::LoseReply,
        ("signal", _) => Fault::Refuse,
        // The first look is before the answer is sent.
        ("inbox", 2..) => Fault::Refuse,
        _ => Fault::Pass,
    });
    let answer = SignalOptions::run("r1").gate("gate").approve().by("ann").key("k1");
    let producer = producer.with_patience(Duration::from_secs(30));
    let call = tokio::spawn(async move { producer.signal(&answer).await });
    until_async("the answer to be stored", Duration::from_secs(30), async || {
        (store.done("signal") == 1).then_some(())
    })
    .await;
    let mut owner = world.claim().await;
    owner.take_answer().await;
    owner.complete().await;
    store.set_plan(|_, _| Fault::Pass);
    let told = call.await.unwrap().unwrap();
    assert_eq!((told.outcome, told.decided_by.as_str()), (SignalOutcome::Delivered, "ann"));
}

/// Between the look at a gate and the answer to it the gate opened, was answered by somebody else
/// and closed: the answer was kept for ever, or for the gate's next opening.
#[tokio::test]
async fn an_early_answer_that_came_too_late_is_not_kept() {
    let world = World::new().await;
    let mut owner = world.begun("r1").await;
    let (store, producer) = faulty(&world, |called, _| match called {
        "signal" => Fault::Refuse,
        _ => Fault::Pass,
    });
    let producer = producer.with_patience(Duration::from_secs(30));
    let answer = SignalOptions::run("r1").gate("gate").reject().by("ann");
    let call = tokio::spawn(async move { producer.signal(&answer).await });
    until_async("the answer to be sent", Duration::from_secs(30), async || {
        (store.count("signal") > 0).then_some(())
    })
    .await;
    owner.ask("r1-q1").await;
    owner.park().await;
    let first = SignalOptions::run("r1").gate("gate").approve().by("bob");
    assert_eq!(world.producer.signal(&first).await.unwrap().outcome, SignalOutcome::Delivered);
    let mut owner = world.claim().await;
    owner.take_answer().await;
    store.set_plan(|_, _| Fault::Pass);
    let told = call.await.unwrap().unwrap_err();
    let ProducerError::Decided { decision, .. } = &told else { panic!("{told:?}") };
    assert_eq!(decision.by, "bob");
    assert_eq!(world.store.inbox(&run("r1")).await.unwrap(), []);
}

/// Two calls with one key at once: the slower one was told that the question had been decided, by
/// its own answer.
#[tokio::test]
async fn a_repeat_that_overlaps_the_first_call_gets_its_reply() {
    let world = World::new().await;
    world.parked("r1").await;
    let (store, producer) = faulty(&world, |called, _| match called {
        "questions" => Fault::Refuse,
        _ => Fault::Pass,
    });
    let producer = producer.with_patience(Duration::from_secs(30));
    let answer = SignalOptions::run("r1").gate("gate").approve().by("ann").key("k1");
    let again = answer.clone();
    let call = tokio::spawn(async move { producer.signal(&again).await });
    until_async("the look at the questions", Duration::from_secs(30), async || {
        (store.count("questions") > 0).then_some(())
    })
    .await;
    let first = world.producer.signal(&answer).await.unwrap();
    world.claim().await.take_answer().await;
    store.set_plan(|_, _| Fault::Pass);
    assert_eq!(call.await.unwrap().unwrap(), first);
}

/// The answer was stored, and only the look at what stands behind its key failed.
#[tokio::test]
async fn an_answer_that_was_stored_is_not_said_to_be_refused() {
    let world = World::new().await;
    world.parked("r1").await;
    let (_, producer) = faulty(&world, |called, number| match (called, number) {
        ("inbox", 2..) => Fault::Refuse,
        _ => Fault::Pass,
    });
    let producer = producer.with_patience(Duration::from_millis(50));
    let answer = SignalOptions::run("r1").gate("gate").approve().key("k1");
    assert_eq!(code(producer.signal(&answer).await), "E_UNKNOWN_OUTCOME");
    let again = world.producer.signal(&answer).await.unwrap();
    assert_eq!(again.outcome, SignalOutcome::Delivered);
}

#[tokio::test]
async fn a_repeated_answer_is_not_given_to_the_next_question() {
    let world = World::new().await;
    world.parked("r1").await;
    let (store, producer) = faulty(&world, first("signal", Fault::LoseReply));
    let said = producer.signal(&SignalOptions::run("r1").approve()).await.unwrap();
    assert_eq!(said.interrupt.unwrap().as_str(), "r1-q1");
    assert_eq!(store.count("signal"), 1, "the answer was found, not sent again");
}

#[tokio::test]
async fn a_batch_goes_on_after_a_lost_reply() {
    let world = World::new().await;
    let (_, producer) = faulty(&world, |called, number| match (called, number) {
        ("enqueue", 2) => Fault::LoseReply,
        _ => Fault::Pass,
    });
    let batch: Vec<RunRequest> =
        (0..250).map(|n| RunRequest::new("g").run(format!("r{n}"))).collect();
    let verdicts = producer.enqueue_batch(&batch, false).await.unwrap();
    assert!(verdicts.iter().all(|verdict| verdict.as_ref().unwrap().created));
}

/// The reply to several answers was lost, and the run had taken them before the next try.
#[tokio::test]
async fn answers_that_were_taken_are_not_called_too_late() {
    let world = World::new().await;
    world.parked("r1").await;
    let (store, producer) = faulty(&world, |called, number| match (called, number) {
        ("signal_all", 1) => Fault::LoseReply,
        ("signal_all" | "inbox", _) => Fault::Refuse,
        _ => Fault::Pass,
    });
    let answers = SignalOptions::run("r1").by("ann").each([("r1-q1", json!({"approve": true}))]);
    let producer = producer.with_patience(Duration::from_secs(30));
    let call = tokio::spawn(async move { producer.signal_all(&answers).await });
    until_async("the answers to be stored", Duration::from_secs(30), async || {
        (store.done("signal_all") == 1).then_some(())
    })
    .await;
    let mut owner = world.claim().await;
    owner.take_answer().await;
    owner.complete().await;
    store.set_plan(|_, _| Fault::Pass);
    let told = call.await.unwrap().unwrap();
    let told: Vec<_> = told.iter().map(|one| (one.outcome, one.decided_by.as_str())).collect();
    assert_eq!(told, [(SignalOutcome::Delivered, "ann")]);
}
