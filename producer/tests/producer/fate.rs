//! What became of a question, wherever its answer is.

use holdpoint_graph::{RunStatus, SessionId};
use holdpoint_producer::{Fate, RunRequest, SignalOptions};

use crate::world::{World, question_id, run};

#[tokio::test]
async fn an_answer_is_found_before_and_after_a_worker_takes_it() {
    let world = World::new().await;
    let (id, question) = world.parked("r1").await;
    let question = question_id(&question);
    assert_eq!(world.producer.fate(&id, &question).await.unwrap(), Fate::Open);
    world.producer.signal(&SignalOptions::run("r1").approve().by("ann")).await.unwrap();
    let waiting = world.producer.fate(&id, &question).await.unwrap();
    let Fate::Decided(decision) = &waiting else { panic!("{waiting:?}") };
    assert_eq!(decision.by, "ann");
    let mut owner = world.claim().await;
    owner.take_answer().await;
    owner.complete().await;
    assert_eq!(world.producer.fate(&id, &question).await.unwrap(), waiting);
}

#[tokio::test]
async fn a_question_may_end_without_an_answer() {
    let world = World::new().await;
    let request = RunRequest::new("g").run("r1").session("s");
    world.producer.enqueue(&request).await.unwrap();
    let mut owner = world.claim().await;
    owner.begin().await;
    owner.ask("q1").await;
    owner.park().await;
    world.producer.cancel(&run("r1"), "ann").await.unwrap();
    let fate = async || world.producer.fate(&run("r1"), &question_id("q1")).await.unwrap();
    assert_eq!(fate().await, Fate::Closed(RunStatus::Cancelled));
    let session = SessionId::new("s").unwrap();
    world.producer.delete_session(&session, None).await.unwrap();
    assert_eq!(fate().await, Fate::Deleted);
}
