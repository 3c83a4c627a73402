//! Which run comes first: priorities, places kept for life, several lanes, paused queues, pins.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode};

use super::{
    Bench,
    world::{HOUR_MS, World, claim_request, id, lane, new_run, question, structure, to_interrupt},
};
use crate::{AppendKind, ClaimRequest, CommitRequest, Disposition, IfBusy, Lane, NewRun, When};

/// Higher priorities first, and equal ones in the order of their enqueue.
pub async fn priority_then_age(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for (name, priority) in [("a", 5), ("b", 9), ("c", 0), ("d", 9), ("e", 5)] {
        world.created(&NewRun { priority, ..new_run(name) }).await;
    }
    assert_eq!(world.claimed_ids(&claim_request("w1", 4)).await, ["b", "d", "a", "e"]);
    assert_eq!(world.claimed_ids(&claim_request("w1", 4)).await, ["c"]);
}

/// A claim that asks for the oldest takes it whatever its priority is: nobody starves.
pub async fn oldest_first_ignores_priority(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for (name, priority) in [("a", 1), ("b", 9), ("c", 5)] {
        world.created(&NewRun { priority, ..new_run(name) }).await;
    }
    let oldest = ClaimRequest { oldest_first: true, ..claim_request("w1", 2) };
    assert_eq!(world.claimed_ids(&oldest).await, ["a", "b"]);
}

/// A released run returns to its old place.
pub async fn release_keeps_the_place(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c"] {
        world.created(&new_run(name)).await;
    }
    let claims = world.claim_up_to(2).await;
    assert!(world.release(&claims[0].lease).await.unwrap());
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["a", "c"]);
}

/// A run that was put off, or woken by an answer, or redriven, returns to its old place.
pub async fn return_keeps_the_place(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c", "d"] {
        world.created(&new_run(name)).await;
    }
    let claims = world.claim_up_to(3).await;
    let failed = Disposition::Finish { end: End::Failed(ReasonCode::NodeError) };
    world.done(&world.draft(&claims[0], 1, failed)).await;
    world.done(&world.draft(&claims[1], 1, Disposition::Reschedule { until_ms: 0 })).await;
    let park = world.draft(&claims[2], 1, Disposition::Park { wake_at_ms: None });
    world.done(&CommitRequest { opened: vec![question("q1", None)], ..park }).await;

    world.answer(&id("c"), to_interrupt("q1"), "yes").await;
    world.append(&world.append_now(&id("a")).await, &AppendKind::Redrive).await.unwrap();
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["a", "b", "c", "d"]);
}

/// Several lanes are one line: priority and age decide over all of them.
pub async fn lanes_are_merged(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let pinned = Some(structure("v1"));
    let items = [
        NewRun { queue: id("q1"), ..new_run("a") },
        NewRun { queue: id("q2"), priority: 7, ..new_run("b") },
        NewRun { graph: id("other"), ..new_run("c") },
        NewRun { fingerprint: pinned.clone(), ..new_run("d") },
        NewRun { queue: id("q3"), priority: 9, ..new_run("unserved") },
        NewRun { queue: id("q1"), ..new_run("e") },
    ];
    world.enqueue(&items, false).await.unwrap();
    let lanes = items.iter().filter(|item| item.queue.as_str() != "q3").map(NewRun::lane);
    let request = ClaimRequest { lanes: lanes.collect(), ..claim_request("w1", 9) };
    assert_eq!(world.claimed_ids(&request).await, ["b", "a", "c", "d", "e"]);
}

/// A claim takes from the lanes it names and from no other; without a lane it takes nothing.
pub async fn foreign_lanes_are_left_alone(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("a")).await;
    let others = vec![
        Lane { queue: id("other"), ..lane() },
        Lane { graph: id("other"), ..lane() },
        Lane { fingerprint: Some(structure("v1")), ..lane() },
    ];
    let request = ClaimRequest { lanes: others, ..claim_request("w1", 9) };
    assert!(world.claimed_ids(&request).await.is_empty());
    let request = ClaimRequest { lanes: Vec::new(), ..claim_request("w1", 9) };
    assert!(world.claimed_ids(&request).await.is_empty());
    let request = ClaimRequest { max: 0, ..claim_request("w1", 9) };
    assert!(world.claimed_ids(&request).await.is_empty());
    assert_eq!(world.claimed_ids(&claim_request("w1", 9)).await, ["a"]);
}

/// A paused queue gives no runs, takes new ones, and gives them when it is resumed.
pub async fn paused_queue_is_skipped(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&new_run("a")).await;
    world.created(&NewRun { queue: id("other"), ..new_run("b") }).await;
    world.pause(&id("default"), true).await.unwrap();
    world.created(&new_run("c")).await;
    assert_eq!(world.stats().await.unwrap().paused, [id("default")]);

    let other = Lane { queue: id("other"), ..lane() };
    let request = ClaimRequest { lanes: vec![lane(), other], ..claim_request("w1", 9) };
    assert_eq!(world.claimed_ids(&request).await, ["b"]);
    world.pause(&id("default"), false).await.unwrap();
    assert_eq!(world.claimed_ids(&claim_request("w1", 9)).await, ["a", "c"]);
    assert_eq!(world.stats().await.unwrap().paused, []);
}

/// What runs already goes on in a paused queue.
pub async fn paused_queue_lets_runs_end(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("a").await;
    world.pause(&id("default"), true).await.unwrap();
    world.end(&claimed, End::Completed).await;
}

/// A commit that pins the run moves it to the lane of that structure for good.
pub async fn pin_moves_the_lane(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("a").await;
    let draft = world.draft(&claimed, 1, Disposition::Reschedule { until_ms: 0 });
    world.done(&CommitRequest { pin: Some(structure("v1")), ..draft }).await;
    assert_eq!(world.head_of(&id("a")).await.fingerprint, Some(structure("v1")));
    assert!(world.claim_up_to(5).await.is_empty(), "it left the lane of new runs");
    let lanes = vec![Lane { fingerprint: Some(structure("v1")), ..lane() }];
    let request = ClaimRequest { lanes, ..claim_request("w1", 5) };
    assert_eq!(world.claimed_ids(&request).await, ["a"]);
}

/// The next run of a session comes by its own place and priority.
pub async fn session_heads_are_in_line(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let of_session = |name: &str, priority| NewRun {
        session: Some(id("s1")),
        if_busy: IfBusy::Enqueue,
        priority,
        ..new_run(name)
    };
    world.created(&of_session("s-low", 1)).await;
    world.created(&of_session("s-high", 9)).await;
    world.created(&NewRun { priority: 3, ..new_run("a") }).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 1)).await, ["a"]);
    let claimed = world.claim_next().await;
    assert_eq!(claimed.head.run.as_str(), "s-low");
    world.created(&NewRun { priority: 5, ..new_run("b") }).await;
    world.end(&claimed, End::Completed).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["s-high", "b"]);
}

/// A due timer is fired by the claim itself, and the run comes by its place.
pub async fn claim_fires_due_timers(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&NewRun { start: When::In(60), ..new_run("late") }).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("later") }).await;
    world.created(&new_run("now")).await;
    world.let_pass(60).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["late", "now"]);
}
