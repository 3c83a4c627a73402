//! What a killed worker leaves: a gate is not passed by a crash, a second click opens no other, and
//! what was committed is not repeated.

use std::collections::BTreeSet;

use holdpoint::{Code, Event, InterruptKind, QuestionFilter, RunId, RunStatus, SignalOptions};
use holdpoint_testkit::until_async;
use serde_json::json;

use crate::world::{LONG, Worker, World, on_all};

fn approval(run: &RunId, question: &str) -> SignalOptions {
    let answer = json!({ "approve": true, "n": 1 });
    SignalOptions::run(run.as_str()).interrupt(question).answer(answer).by("ann")
}

/// The one open question of a parked run.
async fn question(world: &World, run: &RunId) -> String {
    let view = world.until(run, RunStatus::Parked).await;
    assert_eq!(view.interrupts.len(), 1, "{view:?}");
    view.interrupts[0].interrupt.to_string()
}

/// T3: the same approval is sent twice, before and after the run stands at its next gate.
#[tokio::test]
async fn a_second_click_opens_no_other_gate() {
    on_all(async |world| {
        let _worker = world.worker(1);
        let run = world.enqueue("two", json!({})).await;
        let first = question(world, &run).await;
        world.producer.signal(&approval(&run, &first)).await.unwrap();
        let again = world.producer.signal(&approval(&run, &first)).await.unwrap_err();
        assert_eq!(again.code(), Code::Decided);
        let second = until_async("the next gate", LONG, async || {
            let page = world.store.questions(&QuestionFilter::of_run(&run), None, 2).await.unwrap();
            let open = page.rows.into_iter().next()?.interrupt.to_string();
            (open != first).then_some(open)
        })
        .await;
        let late = world.producer.signal(&approval(&run, &first)).await.unwrap_err();
        assert_eq!(late.code(), Code::Decided);
        assert!(late.to_string().contains("ann"), "{late}");
        assert_eq!(question(world, &run).await, second);
        assert_eq!(world.ledger().count(run.as_str(), "z", "done"), 0);
    })
    .await;
}

/// T4: the worker is killed at every moment around the second gate's opening; nobody approved it.
#[tokio::test]
async fn a_kill_before_the_park_approves_nothing() {
    on_all(async |world| {
        for _ in 0..5 {
            let worker = world.worker(1);
            let run = world.enqueue("two", json!({})).await;
            let first = question(world, &run).await;
            world.producer.signal(&approval(&run, &first)).await.unwrap();
            until_async("node b", LONG, async || {
                (world.ledger().count(run.as_str(), "b", "done") > 0).then_some(())
            })
            .await;
            world.kill(worker).await;
            let _next = world.worker(1);
            let second = until_async("the second gate", LONG, async || {
                let view = world.view(&run).await;
                let open = view.interrupts.first()?.interrupt.to_string();
                (view.status == RunStatus::Parked && open != first).then_some(open)
            })
            .await;
            assert_ne!(second, first);
            assert_eq!(world.ledger().count(run.as_str(), "z", "done"), 0);
            let events = world.events(&run).await;
            let answered = events.iter().filter(|e| matches!(e, Event::InterruptAnswered { .. }));
            assert_eq!(answered.count(), 1);
            let ended = events.iter().filter(|e| matches!(e, Event::NodeCompleted { .. }));
            assert_eq!(ended.count(), 2, "a and b, each committed once");
        }
    })
    .await;
}

/// Kills the run's worker once these nodes have left their effects and so many are committed.
async fn kill_at(world: &World, run: &RunId, worker: Worker, nodes: &[&str], committed: usize) {
    until_async("the nodes", LONG, async || {
        let has_left = |node: &&str| world.ledger().count(run.as_str(), node, "effect") > 0;
        let events = world.events(run).await;
        let ended = events.iter().filter(|e| matches!(e, Event::NodeCompleted { .. })).count();
        (nodes.iter().all(has_left) && ended == committed).then_some(())
    })
    .await;
    world.kill(worker).await;
}

fn effects(world: &World, run: &RunId, nodes: &[&str]) -> Vec<usize> {
    nodes.iter().map(|node| world.ledger().count(run.as_str(), node, "effect")).collect()
}

/// R1, and R2b: A is committed and its worker dies in B, perhaps with the store: A's result is
/// used, and B runs again under its one key.
#[tokio::test]
async fn what_was_committed_before_a_kill_is_used() {
    on_all(async |world| {
        for with_store in [false, true] {
            let run = world.enqueue("latch", json!({})).await;
            kill_at(world, &run, world.worker(1), &["b"], 1).await;
            if let Some(server) = world.server.as_ref().filter(|_| with_store) {
                server.restart();
            }
            let _next = world.worker(1);
            let view = world.until(&run, RunStatus::Completed).await;
            assert_eq!(effects(world, &run, &["a", "b", "z"]), [1, 2, 1]);
            assert_eq!(view.state.get("path"), Some(&json!(["a", "b", "z"])));
            assert_eq!((view.counters.steps, view.counters.lost_workers), (3, 1));
            let entries = world.ledger().entries().into_iter();
            let keys: BTreeSet<String> =
                entries.filter(|e| e.run == run.as_str() && e.node == "b").map(|e| e.at).collect();
            assert_eq!(keys.len(), 1, "one idempotency key");
        }
    })
    .await;
}

/// R2: the unsafe node left its effect and its worker died: it is asked about, and each answer does
/// what it says.
#[tokio::test]
async fn an_unsafe_effect_of_a_killed_worker_is_asked_about() {
    on_all(async |world| {
        for (answer, end, times, path) in [
            (json!("retry"), RunStatus::Completed, 2, json!(["a", "b", "z"])),
            (json!({ "result": { "path": 7 } }), RunStatus::Completed, 1, json!(["a", 7, "z"])),
            (json!("skip"), RunStatus::Completed, 1, json!(["a", "z"])),
            (json!("fail"), RunStatus::Failed, 1, json!(["a"])),
        ] {
            let run = world.enqueue("unsafe", json!({})).await;
            kill_at(world, &run, world.worker(1), &["b"], 1).await;
            let _next = world.worker(1);
            let view = world.until(&run, RunStatus::Parked).await;
            assert_eq!(view.interrupts[0].kind, InterruptKind::Uncertain);
            assert_eq!(effects(world, &run, &["b"]), [1]);
            let signal = SignalOptions::run(run.as_str()).answer(answer.clone());
            world.producer.signal(&signal).await.unwrap();
            let view = world.until(&run, end).await;
            assert_eq!(effects(world, &run, &["b"]), [times], "{answer}");
            assert_eq!(view.state.get("path"), Some(&path), "{answer}");
        }
    })
    .await;
}

/// R4 and R4c: a finished branch is used, one that had not begun runs once, an unsafe one that had
/// is asked about, alone; the results stand in the order of the branches.
#[tokio::test]
async fn branches_are_judged_one_by_one() {
    on_all(async |world| {
        for (graph, path) in [("ab", json!(["a", "b", "z"])), ("ba", json!(["b", "a", "z"]))] {
            let run = world.enqueue(graph, json!({})).await;
            kill_at(world, &run, world.worker(1), &["a"], 2).await;
            let next = world.worker(1);
            let view = world.until(&run, RunStatus::Completed).await;
            assert_eq!(effects(world, &run, &["a", "b", "z"]), [1, 1, 1]);
            assert_eq!(view.state.get("path"), Some(&path));
            assert!(world.store.lost(&next.id, "signal 9", &[0]).await.unwrap().is_empty());
        }
        let run = world.enqueue("abc", json!({})).await;
        kill_at(world, &run, world.worker(1), &["a", "c"], 2).await;
        let _next = world.worker(1);
        let view = world.until(&run, RunStatus::Parked).await;
        let asked: Vec<_> = view.interrupts.iter().map(|open| open.node.as_deref()).collect();
        assert_eq!(asked, [Some("c")], "{view:?}");
        assert_eq!(effects(world, &run, &["a", "b", "c", "z"]), [1, 1, 1, 0]);
        assert_eq!(view.state.get("path"), None, "nothing is published before the answer");
        let answer = json!({ "result": { "path": "c" } });
        let signal = SignalOptions::run(run.as_str()).answer(answer);
        world.producer.signal(&signal).await.unwrap();
        let view = world.until(&run, RunStatus::Completed).await;
        assert_eq!(view.state.get("path"), Some(&json!(["a", "b", "c", "z"])));
        assert_eq!(effects(world, &run, &["a", "b", "c", "z"]), [1, 1, 1, 1]);
    })
    .await;
}
