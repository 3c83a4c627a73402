//! Looking at runs: views, lists, waiting, following, and why nothing moves.

use std::time::Duration;

use holdpoint_graph::{Event, RunStatus};
use holdpoint_producer::{FollowItem, GateFilter, GateOrder, RunRequest, SignalOptions, Until};
use holdpoint_storage::{Disposition, RunFilter};
use serde_json::{Value, json};

use crate::world::{World, code, json_of, lose_worker, run};

#[tokio::test]
async fn a_run_is_shown_with_all_that_is_known() {
    let world = World::new().await;
    let request = RunRequest::new("g").run("r1").input(json!({ "n": 1 })).tag("team", "blue");
    world.producer.enqueue(&request).await.unwrap();
    let fresh = json_of(&world.producer.get(&run("r1")).await.unwrap());
    assert_eq!((&fresh["seq"], &fresh["state"]), (&Value::Null, &json!({})));

    let mut owner = world.claim().await;
    owner.begin().await;
    owner.step("a", "gate").await;
    owner.ask("q1").await;
    owner.park().await;
    let shown = json_of(&world.producer.get(&run("r1")).await.unwrap());
    assert_eq!(shown["status"], "parked");
    assert_eq!(shown["state"], json!({ "n": 1, "a": 1 }));
    assert_eq!(shown["seq"], 4);
    let position = json!([{ "node": "gate", "visit": 1, "branch": [], "status": "asked" }]);
    assert_eq!(shown["position"], position);
    let asked = &shown["interrupts"][0];
    assert_eq!((&asked["interrupt"], &asked["node"]), (&json!("q1"), &json!("gate")));
    assert_eq!((&asked["kind"], &asked["votes"]), (&json!("gate"), &json!([])));
    assert_eq!(asked["opened_at"], "1970-01-01T00:00:01.000Z");
    assert_eq!(shown["attempts"][0]["worker"], "w1");
    assert_eq!(shown["attempts"][0]["end"], "parked");
    assert_eq!(shown["counters"], json!({ "steps": 1, "node_errors": 0, "lost_workers": 0 }));
    assert_eq!(shown["tags"], json!({ "team": "blue" }));
    assert!(shown["started_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&shown["finished_at"], &shown["due_at"]), (&Value::Null, &Value::Null));
    assert_eq!(code(world.producer.get(&run("no")).await), "E_NOT_FOUND");

    let state = world.producer.state_at(&run("r1"), Some(1)).await.unwrap();
    assert_eq!(state.into_json(), json!({ "n": 1 }));
    let history = json_of(&world.producer.history(&run("r1")).await.unwrap());
    let types: Vec<&str> =
        history.as_array().unwrap().iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run_started", "node_completed", "interrupt_opened"]);
}

#[tokio::test]
async fn attempts_tell_how_each_worker_fared() {
    let world = World::new().await;
    let ends = async |world: &World| {
        let view = world.producer.get(&run("r1")).await.unwrap();
        let ends = view.attempts.iter().map(|attempt| attempt.end.to_string());
        ends.collect::<Vec<_>>()
    };
    let owner = world.begun("r1").await;
    assert_eq!(ends(&world).await, ["running"]);
    assert!(world.store.release(&owner.claimed.lease).await.unwrap());
    assert_eq!(ends(&world).await, ["released"]);
    let _silent = world.claim().await;
    assert_eq!(ends(&world).await, ["released", "running"]);
    lose_worker(&world, "exit 9").await;
    assert_eq!(ends(&world).await, ["released", "lost(exit 9)"]);
    let mut owner = world.claim().await;
    owner.ask("q1").await;
    assert_eq!(ends(&world).await, ["released", "lost(exit 9)", "running"]);
    owner.park().await;
    world.producer.signal(&SignalOptions::run("r1").approve()).await.unwrap();
    let mut owner = world.claim().await;
    owner.take_answer().await;
    let until_ms = world.store.now_ms().await.unwrap() + 60_000;
    owner.event(Event::RunRescheduled { until_ms });
    owner.commit(Disposition::Reschedule { until_ms }).await;
    world.producer.start_now(&run("r1")).await.unwrap();
    world.claim().await.complete().await;
    let all = ["released", "lost(exit 9)", "parked", "rescheduled", "finished"];
    assert_eq!(ends(&world).await, all);
}

#[tokio::test]
async fn events_are_flat_and_name_their_worker() {
    let world = World::new().await;
    let (id, _) = world.parked("r1").await;
    world.producer.signal(&SignalOptions::run("r1").approve().by("ann")).await.unwrap();
    let mut owner = world.claim().await;
    owner.take_answer().await;
    owner.step("a", "b").await;
    let events = world.producer.events(&id, 0).await.unwrap();
    let events: Vec<Value> = events.iter().map(json_of).collect();
    for (seq, event) in (0..).zip(&events) {
        assert_eq!((&event["seq"], &event["worker"]), (&json!(seq), &json!("w1")));
        assert!(event["at"].as_str().unwrap().ends_with('Z') && event["epoch"].is_u64());
    }
    let of = |name: &str| events.iter().find(|event| event["type"] == name).unwrap();
    assert_eq!(of("run_started")["begin"]["entry"]["entry"], "a");
    assert_eq!(
        (&of("interrupt_opened")["interrupt"], &of("interrupt_opened")["gate"]),
        (&json!("r1-q1"), &json!("gate"))
    );
    let answered = of("interrupt_answered");
    assert_eq!(
        (&answered["answer"], &answered["decided_by"]),
        (&json!({ "approve": true }), &json!("ann"))
    );
    let node = of("node_completed");
    assert_eq!(
        (&node["node"], &node["visit"], &node["branch"]),
        (&json!("a"), &json!(1), &json!([]))
    );
    assert_eq!(of("run_parked")["wake_at"], Value::Null);
    assert_eq!(world.producer.events(&id, 3).await.unwrap()[0].seq, 3);
}

#[tokio::test]
async fn a_follower_gets_every_event_once_with_partials_between() {
    let world = World::new().await;
    let mut owner = world.begun("r1").await;
    let mut follow = world.producer.follow(&run("r1"), 1, Until::Terminal);
    world.store.partial(&run("r1"), 2, br#"{"node":"a","value":1}"#.to_vec()).await.unwrap();
    let work = async {
        owner.step("a", "b").await;
        owner.complete().await;
    };
    let read = async {
        let mut seen = Vec::new();
        while let Some(item) = follow.next().await {
            seen.push(match item.unwrap() {
                FollowItem::Event(event) => json!(event.seq),
                partial @ FollowItem::Partial(_) => json_of(&partial),
            });
        }
        (seen, follow.status())
    };
    let (_, (seen, status)) = tokio::join!(work, read);
    let partial = json!({ "after": 1, "n": 1, "type": "partial", "node": "a", "value": 1 });
    assert_eq!(seen, [json!(1), partial, json!(2), json!(3), json!(4)]);
    assert_eq!(status, Some(RunStatus::Completed));
}

#[tokio::test]
async fn waiting_ends_with_the_run_or_with_the_time() {
    let world = World::new().await;
    let mut owner = world.begun("r1").await;
    let soon = Some(Duration::from_millis(1));
    assert!(world.producer.wait(&run("r1"), Until::Parked, soon).await.unwrap().is_none());
    let id = run("r1");
    let (_, parked) = tokio::join!(
        async {
            owner.ask("q1").await;
            owner.park().await;
        },
        world.producer.wait(&id, Until::Parked, None)
    );
    assert_eq!(parked.unwrap().unwrap().status, RunStatus::Parked);
    assert!(world.producer.wait(&id, Until::Terminal, soon).await.unwrap().is_none());
    assert_eq!(code(world.producer.wait(&run("no"), Until::Parked, None).await), "E_NOT_FOUND");
}

#[tokio::test]
async fn lists_are_paged_by_cursors() {
    let world = World::new().await;
    for id in ["r1", "r2", "r3"] {
        world.parked(id).await;
    }
    let filter = RunFilter { statuses: vec![RunStatus::Parked], ..RunFilter::default() };
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = world.producer.list(&filter, after.as_deref(), 2).await.unwrap();
        seen.extend(page.rows.iter().map(|row| row.run.to_string()));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 3);
    assert_eq!(code(world.producer.list(&filter, Some("x"), 2).await), "E_CURSOR");
    assert_eq!(code(world.producer.list(&filter, None, 0).await), "E_RANGE");
    let row = json_of(&world.producer.list(&filter, None, 1).await.unwrap().rows[0]);
    let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
    let expect = [
        "created_at",
        "due_at",
        "graph",
        "priority",
        "reason",
        "run",
        "session",
        "status",
        "tags",
        "updated_at",
    ];
    assert_eq!(keys, expect);

    let gates = |assignee: &str| GateFilter {
        assignee: Some(assignee.to_owned()),
        ..GateFilter::default()
    };
    let mine = world.producer.gates(&gates("ann"), None, 50).await.unwrap();
    assert_eq!((mine.rows.len(), mine.next), (3, None));
    let row = json_of(&mine.rows[0]);
    assert_eq!((&row["run"], &row["interrupt"]), (&json!("r1"), &json!("r1-q1")));
    assert_eq!(world.producer.gates(&gates("bob"), None, 50).await.unwrap().rows, []);
    for order in [GateOrder::Oldest, GateOrder::Deadline] {
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let filter = GateFilter { order, graph: Some("g".parse().unwrap()), ..gates("ann") };
            let page = world.producer.gates(&filter, after.as_deref(), 1).await.unwrap();
            found.extend(page.rows.into_iter().map(|row| row.run.to_string()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, ["r1", "r2", "r3"], "{order:?}");
    }
    let none = [
        GateFilter { graph: Some("other".parse().unwrap()), ..gates("ann") },
        GateFilter { tag: Some("no=tag".to_owned()), ..gates("ann") },
        GateFilter { opened_before_ms: Some(1), ..gates("ann") },
        GateFilter { groups: vec!["ann".to_owned()], ..GateFilter::default() },
    ];
    for filter in none {
        assert_eq!(world.producer.gates(&filter, None, 50).await.unwrap().rows, [], "{filter:?}");
    }
    let groups = vec!["ops".to_owned(); holdpoint_graph::limits::GROUPS_MAX + 1];
    let many = GateFilter { groups, ..GateFilter::default() };
    assert_eq!(code(world.producer.gates(&many, None, 50).await), "E_RANGE");
}

#[tokio::test]
async fn counts_workers_graphs_and_queues_are_shown() {
    let world = World::new().await;
    world.publish().await;
    world.beat("g", "1").await;
    world.enqueued("r1").await;
    world.producer.pause_queue(&"slow".parse().unwrap(), true).await.unwrap();
    let stats = json_of(&world.producer.stats().await.unwrap());
    assert_eq!((&stats["counts"]["queued"], &stats["counts"]["failed"]), (&json!(1), &json!(0)));
    assert_eq!((&stats["lanes"][0]["served"], &stats["workers"]), (&json!(true), &json!(1)));
    let queues = json_of(&world.producer.queues().await.unwrap());
    assert_eq!(
        queues[0],
        json!({
            "queue": "default", "paused": false, "queued": 1, "oldest_age_s": 0,
        })
    );
    assert_eq!((&queues[1]["queue"], &queues[1]["paused"]), (&json!("slow"), &json!(true)));
    let worker = json_of(&world.producer.workers().await.unwrap()[0]);
    assert_eq!((&worker["state"], &worker["concurrency"]), (&json!("live"), &json!(4)));
    let graph = json_of(&world.producer.graphs().await.unwrap()[0]);
    assert_eq!((&graph["nodes"], &graph["served"]), (&json!(3), &json!(true)));
}

#[tokio::test]
async fn why_names_the_cause_and_what_to_do() {
    let world = World::new().await;
    let why = async |id: &str| {
        let why = json_of(&world.producer.why(&run(id)).await.unwrap());
        (why["cause"].as_str().unwrap().to_owned(), format!("{} / {}", why["text"], why["fix"]))
    };
    let session = |id: &str| RunRequest::new("g").session("s").run(id);
    world.producer.enqueue(&session("r1")).await.unwrap();
    world.producer.enqueue(&session("r2")).await.unwrap();
    assert_eq!(why("r1").await.0, "waiting_for_worker");
    let (cause, text) = why("r2").await;
    assert!(cause == "behind_session" && text.contains("r1"), "{text}");
    world.beat("other", "1").await;
    assert_eq!(why("r1").await.0, "unknown_graph");
    world.producer.pause_queue(&"default".parse().unwrap(), true).await.unwrap();
    assert_eq!(why("r1").await.0, "queue_paused");
    world.producer.pause_queue(&"default".parse().unwrap(), false).await.unwrap();

    let mut owner = world.claim().await;
    assert_eq!(why("r1").await.0, "running");
    owner.begin().await;
    owner.ask("q1").await;
    owner.park().await;
    let (cause, text) = why("r1").await;
    assert!(cause == "parked" && text.contains("approve r1 --interrupt q1"), "{text}");
    world.producer.signal(&SignalOptions::run("r1").approve()).await.unwrap();
    world.beat("g", "2").await;
    let (cause, text) = why("r1").await;
    assert!(cause == "wrong_version" && text.contains("01") && text.contains("02"), "{text}");
    let _owner = world.claim().await;
    world.store.lost(&"w1".parse().unwrap(), "exit 9", &[60_000]).await.unwrap();
    let (cause, text) = why("r1").await;
    assert!(cause == "worker_lost" && text.contains("exit 9"), "{text}");
    world.producer.cancel(&run("r1"), "ann").await.unwrap();
    assert_eq!(why("r1").await.0, "cancelled");

    let later = RunRequest::new("g").run("r3").delay(Duration::from_secs(60));
    world.producer.enqueue(&later).await.unwrap();
    assert_eq!(why("r3").await.0, "scheduled");
}
