//! Enqueueing: keys, ids, sessions, unknown graphs, batches.

use holdpoint_graph::RunStatus;
use holdpoint_producer::{ProducerError, RunRequest};
use holdpoint_storage::IfBusy;
use serde_json::json;

use crate::world::{World, code, json_of, run};

#[tokio::test]
async fn a_receipt_says_what_was_stored() {
    let world = World::new().await;
    let request = RunRequest::new("g").input(json!({ "n": 1 })).session("s").run("r1");
    let receipt = world.producer.enqueue(&request).await.unwrap();
    let expect = json!({
        "run": "r1", "session": "s", "graph": "g", "created": true, "status": "queued",
        "durability": "buffered",
    });
    assert_eq!(json_of(&receipt), expect);
    let later = RunRequest::new("g").delay(std::time::Duration::from_secs(60));
    let receipt = world.producer.enqueue(&later).await.unwrap();
    assert_eq!(receipt.status, RunStatus::Scheduled);
    assert_eq!(receipt.session, receipt.run.as_str());
}

#[tokio::test]
async fn a_key_names_the_first_run() {
    let world = World::new().await;
    let keyed = |input| RunRequest::new("g").key("k").input(input);
    let first = world.producer.enqueue(&keyed(json!({ "x": 1, "y": 2 }))).await.unwrap();
    let again = serde_json::from_str::<serde_json::Value>(r#"{ "y": 2, "x": 1 }"#).unwrap();
    let second = world.producer.enqueue(&keyed(again)).await.unwrap();
    assert_eq!((second.run, second.created), (first.run.clone(), false));
    for other in [
        keyed(json!({ "x": 2 })),
        keyed(json!({ "x": 1, "y": 2 })).session("s"),
        RunRequest::new("h").key("k").input(json!({ "x": 1, "y": 2 })),
    ] {
        match world.producer.enqueue(&other).await {
            Err(ProducerError::KeyConflict { key, run }) => {
                assert_eq!((key.as_str(), &run), ("k", &first.run));
            }
            reply => panic!("{other:?}: {reply:?}"),
        }
    }
}

#[tokio::test]
async fn a_run_id_is_taken_once_and_a_request_repeated() {
    let world = World::new().await;
    world.enqueued("r1").await;
    let again = RunRequest::new("g").run("r1");
    assert_eq!(code(world.producer.enqueue(&again).await), "E_RUN_EXISTS");
    let request = RunRequest::new("g").request("q1");
    let first = world.producer.enqueue(&request).await.unwrap();
    assert_eq!(world.producer.enqueue(&request).await.unwrap(), first);
}

#[tokio::test]
async fn a_busy_session_answers_as_it_was_asked() {
    let world = World::new().await;
    let session = |id: &str| RunRequest::new("g").session("s").run(id);
    world.producer.enqueue(&session("r1")).await.unwrap();
    let mut owner = world.claim().await;
    owner.begin().await;
    owner.ask("q1").await;
    owner.park().await;
    match world.producer.enqueue(&session("r2").if_busy(IfBusy::Reject)).await {
        Err(error @ ProducerError::SessionBusy { .. }) => {
            let text = "the session s is busy with run r1, which waits for question q1";
            assert_eq!(error.to_string(), text);
        }
        reply => panic!("{reply:?}"),
    }
    let other = RunRequest::new("h").session("s");
    assert_eq!(code(world.producer.enqueue(&other).await), "E_SESSION_GRAPH");
    assert!(world.producer.enqueue(&session("r3")).await.unwrap().created);
}

#[tokio::test]
async fn an_unknown_graph_is_refused_once_any_is_known() {
    let world = World::new().await;
    assert!(world.producer.enqueue(&RunRequest::new("G1")).await.unwrap().created);
    world.publish().await;
    // The list of graphs is a second old at most, and asked for anew before a refusal.
    let known = RunRequest::new("g");
    assert!(world.producer.clone().enqueue(&known).await.unwrap().created);
    let producer = holdpoint_producer::Producer::new(world.store.clone());
    let slip = RunRequest::new("gg");
    let error = producer.enqueue(&slip).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_UNKNOWN_GRAPH");
    assert!(error.to_string().ends_with("did you mean g?"), "{error}");
    assert!(producer.enqueue(&slip.allow_unknown()).await.unwrap().created);
}

#[tokio::test]
async fn a_full_queue_is_told_with_its_depth() {
    let world = World::new().await;
    let producer = world.producer.clone().with_queue_depth_max(2);
    let request = RunRequest::new("g");
    for _ in 0..2 {
        producer.enqueue(&request).await.unwrap();
    }
    let error = producer.enqueue(&request).await.unwrap_err();
    assert_eq!(error.to_string(), "2 runs wait in the queue default, which is its depth");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_batch_is_checked_before_the_first_write() {
    let world = World::new().await;
    let mut batch: Vec<RunRequest> =
        (0..300).map(|n| RunRequest::new("g").run(format!("r{n}"))).collect();
    batch[277] = batch[277].clone().priority(12);
    let error = world.producer.enqueue_batch(&batch, false).await.unwrap_err();
    assert_eq!((error.index, error.stored), (Some(277), 0));
    assert_eq!(error.to_string(), "item 277: priority is 12, it must be 0 to 9");
    assert!(world.store.head(&run("r0")).await.unwrap().is_none());

    let verdicts = world.producer.enqueue_batch(&batch, true).await.unwrap();
    assert_eq!(verdicts.len(), 300);
    let refused: Vec<usize> = (0..300).filter(|n| verdicts[*n].is_err()).collect();
    assert_eq!(refused, [277]);
    assert_eq!(verdicts[299].as_ref().unwrap().run, run("r299"));

    batch.truncate(2);
    batch[1] = batch[0].clone();
    let error = world.producer.enqueue_batch(&batch, false).await.unwrap_err();
    assert_eq!((error.index, error.code().as_str()), (Some(1), "E_RUN_EXISTS"));
    let many = vec![RunRequest::new("g"); 10_001];
    let error = world.producer.enqueue_batch(&many, false).await.unwrap_err();
    assert_eq!((error.index, error.code().as_str()), (None, "E_TOO_LARGE"));
}

#[tokio::test]
async fn a_repeated_batch_completes_what_was_left() {
    let world = World::new().await;
    let batch: Vec<RunRequest> =
        (0..250).map(|n| RunRequest::new("g").run(format!("r{n}"))).collect();
    for id in ["r5", "r120", "r249"] {
        world.enqueued(id).await;
    }
    let verdicts = world.producer.enqueue_batch(&batch, false).await.unwrap();
    let old: Vec<usize> = (0..250).filter(|n| !verdicts[*n].as_ref().unwrap().created).collect();
    assert_eq!(old, [5, 120, 249]);
    assert!(world.store.head(&run("r248")).await.unwrap().is_some());

    // Another payload under a taken id is a conflict, and its whole chunk is not stored.
    let mut other: Vec<RunRequest> =
        (0..150).map(|n| RunRequest::new("g").run(format!("s{n}"))).collect();
    other[120] = RunRequest::new("g").run("r120").input(json!({ "n": 1 }));
    let error = world.producer.enqueue_batch(&other, false).await.unwrap_err();
    assert_eq!((error.index, error.stored), (Some(120), 100));
    assert!(world.store.head(&run("s99")).await.unwrap().is_some());
    assert!(world.store.head(&run("s100")).await.unwrap().is_none());
}
