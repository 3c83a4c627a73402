//! Workers that die: what was committed is not repeated, what is unknown is asked about.

use std::{sync::Arc, time::Duration};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Effect, InterruptKind, NodeContext, NodeOptions, ReasonCode, RunId, RunStatus, State,
    StateGraph, Update,
};
use holdpoint_storage::{Address, Renewal};
use holdpoint_testkit::{Fault, FaultyStore};
use serde_json::json;

use crate::{
    bench::{Bench, on_each_store},
    nodes::{line, logged},
};

/// Executes one claim with a store that hangs at a commit, and kills the worker there, or when it
/// has ended before.
pub(crate) async fn die_at_commit(bench: &Bench, number: u64, fault: Fault) {
    let faulty = FaultyStore::new(bench.store.clone(), move |name, at| {
        if name == "commit" && at == number { fault } else { Fault::Pass }
    });
    let faulty = Arc::new(faulty);
    let dying = bench.over(Arc::<FaultyStore>::clone(&faulty) as _);
    let working = tokio::spawn(async move { dying.work().await });
    holdpoint_testkit::until_async("the commit", Duration::from_secs(10), async || {
        let reached = match fault {
            Fault::HangAfter => faulty.done("commit"),
            _ => faulty.count("commit"),
        };
        (reached >= number || working.is_finished()).then_some(())
    })
    .await;
    working.abort();
    let _ = working.await;
    bench.lose("w1").await;
}

/// T1: with the worker killed before or after any commit, each node runs once, or once more when
/// its commit had not arrived.
#[tokio::test]
async fn a_committed_node_never_runs_again() {
    on_each_store(async |mut bench: Bench| {
        for (round, fault) in [Fault::HangBefore, Fault::HangAfter].into_iter().enumerate() {
            for number in 1..=3_u64 {
                let log = crate::bench::Log::default();
                let id = format!("line-{round}-{number}");
                bench.add(line(&id, &["a", "b", "c"], &log).compile().unwrap());
                let run = bench.enqueue(&id, json!({})).await;
                die_at_commit(&bench, number, fault).await;
                bench.drain().await;
                assert_eq!(bench.status(&run).await, RunStatus::Completed);
                for (at, name) in (1..).zip(["a", "b", "c"]) {
                    let lost = fault == Fault::HangBefore && at == number;
                    assert_eq!(log.count(name), 1 + usize::from(lost), "{name} at {number}");
                }
                let finished = number == 3 && fault == Fault::HangAfter;
                let lost = bench.count(&run, "worker_lost").await;
                assert_eq!(lost, usize::from(!finished));
                assert_eq!(bench.count(&run, "node_completed").await, 3);
            }
        }
    })
    .await;
}

/// T15: a worker that lost its lease can write nothing, even under the same worker id.
#[tokio::test]
async fn a_stale_owner_writes_nothing() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a", "b"], &log).compile().unwrap());
        let run = bench.enqueue("line", json!({})).await;
        let old = bench.claim("w0").await.unwrap();
        bench.lose("w0").await;
        let new = bench.claim("w0").await.unwrap();
        assert!(new.run.lease.pair.epoch > old.run.lease.pair.epoch);
        let renewed =
            bench.store.renew(std::slice::from_ref(&old.run.lease), 10_000).await.unwrap();
        assert_eq!(renewed, [Renewal::Fenced]);
        assert!(!bench.store.release(&old.run.lease).await.unwrap());
        let before = bench.head(&run).await;
        assert_eq!(bench.executor().execute(old).await, Outcome::Fenced);
        assert_eq!(bench.head(&run).await, before);
        assert_eq!(bench.executor().execute(new).await, Outcome::Completed);
        assert_eq!(bench.count(&run, "node_completed").await, 2);
    })
    .await;
}

/// B10: a commit whose first replies are lost is repeated, and has one effect.
#[tokio::test]
async fn a_lost_commit_reply_has_one_effect() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a", "b", "c"], &log).compile().unwrap());
        let run = bench.enqueue("line", json!({})).await;
        let faulty = FaultyStore::new(bench.store.clone(), |name, at| match (name, at % 3) {
            ("commit", 1) => Fault::Refuse,
            ("commit", 2) => Fault::LoseReply,
            _ => Fault::Pass,
        });
        let outcome = bench.over(Arc::new(faulty)).work().await;
        assert_eq!(outcome, Some(Outcome::Completed));
        assert_eq!(log.all(), ["a", "b", "c"]);
        assert_eq!(bench.count(&run, "node_completed").await, 3);
    })
    .await;
}

fn unsafe_graph(bench: &Bench) -> StateGraph {
    let log = bench.log();
    let charge = log.clone();
    let options = NodeOptions::new().effect(Effect::Unsafe);
    StateGraph::new("pay")
        .add_node_with("charge", options, move |_: NodeContext, _: State| {
            charge.add("charge");
            async { Ok(Update::new().set("receipt", 17)) }
        })
        .add_node("ship", logged("ship", &log))
        .add_edge("charge", "ship")
        .set_entry_point("charge")
        .set_finish_point("ship")
}

/// An unsafe effect that began and has no result is never repeated silently.
#[tokio::test]
async fn an_unsafe_effect_of_unknown_outcome_is_asked_about() {
    on_each_store(async |mut bench: Bench| {
        bench.add(unsafe_graph(&bench).compile().unwrap());
        let answers = [
            (json!("retry"), RunStatus::Completed, 2),
            (json!({ "result": { "receipt": 18 } }), RunStatus::Completed, 1),
            (json!("skip"), RunStatus::Completed, 1),
            (json!("fail"), RunStatus::Failed, 1),
        ];
        for (answer, end, charges) in answers {
            let before = bench.log().count("charge");
            let run = bench.enqueue("pay", json!({})).await;
            // The second commit is the charge's own.
            die_at_commit(&bench, 2, Fault::HangBefore).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let open = bench.progress(&run).await;
            let open = open.open().next().unwrap();
            assert_eq!(open.kind, InterruptKind::Uncertain);
            assert!(open.question.contains("charge"), "{}", open.question);
            bench.answer(&run, answer.clone()).await;
            bench.drain().await;
            assert_eq!(bench.status(&run).await, end, "{answer}");
            assert_eq!(bench.log().count("charge"), before + charges, "{answer}");
            let receipt = bench.state(&run).await.get("receipt").cloned();
            let expected = match charges {
                2 => Some(json!(17)),
                _ => answer.get("result").map(|result| result["receipt"].clone()),
            };
            assert_eq!(receipt, expected, "{answer}");
        }
    })
    .await;
}

/// A run whose workers die again and again without progress stops, with the evidence.
#[tokio::test]
async fn a_crash_loop_ends() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let run = bench.enqueue("line", json!({})).await;
        for _ in 0..3 {
            bench.claim("w1").await.unwrap();
            bench.lose("w1").await;
        }
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::CrashLoop)));
        assert!(log.all().is_empty());
        assert_eq!(bench.count(&run, "worker_lost").await, 3);
        let progress = bench.progress(&run).await;
        let message = &progress.reason().unwrap().message;
        assert!(message.contains("w1 (signal 9)"), "{message}");
        crate::faults::redrive(&bench, &run).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
    })
    .await;
}

/// A memoised step is recorded when it ends and not repeated by the next attempt.
#[tokio::test]
async fn a_step_that_ended_is_not_repeated() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("steps")
            .add_node("n", move |ctx: NodeContext, _: State| {
                let log = node.clone();
                async move {
                    let first = ctx
                        .step("first", || async {
                            log.add("first");
                            Ok(41)
                        })
                        .await?;
                    let second = ctx
                        .step("second", || async {
                            log.add("second");
                            Ok(first + 1)
                        })
                        .await?;
                    Ok(Update::new().set("second", second))
                }
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("steps", json!({})).await;
        die_at_commit(&bench, 2, Fault::HangBefore).await;
        bench.drain().await;
        assert_eq!((log.count("first"), log.count("second")), (1, 2));
        assert_eq!(bench.state(&run).await.get("second"), Some(&json!(42)));
    })
    .await;
}

/// A finished branch is committed on its own and does not run again after a crash.
#[tokio::test]
async fn a_finished_branch_does_not_run_again() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let slow = log.clone();
        let graph = StateGraph::new("mix")
            .add_router("start")
            .add_node("ok", logged("ok", &log))
            .add_node("slow", move |_: NodeContext, _: State| {
                slow.add("slow");
                let first = slow.count("slow") == 1;
                async move {
                    if first {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                }
            })
            .add_edge("start", "ok")
            .add_edge("start", "slow")
            .set_entry_point("start")
            .set_finish_point("ok")
            .set_finish_point("slow");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("mix", json!({})).await;
        let work = bench.clone();
        let working = tokio::spawn(async move { work.work().await });
        holdpoint_testkit::until_async("ok is committed", Duration::from_secs(10), async || {
            (bench.count(&run, "node_completed").await == 2).then_some(())
        })
        .await;
        working.abort();
        let _ = working.await;
        bench.lose("w1").await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!((log.count("ok"), log.count("slow")), (1, 2));
    })
    .await;
}

/// A claim that commits nothing and is lost costs no retry of the node.
#[tokio::test]
async fn a_lost_worker_spends_no_attempt() {
    on_each_store(async |mut bench: Bench| {
        let attempts = bench.log();
        let node = attempts.clone();
        let graph = StateGraph::new("once")
            .add_node_with(
                "n",
                NodeOptions::new().retry(holdpoint_graph::RetryPolicy::once()),
                move |ctx: NodeContext, _: State| {
                    node.add(ctx.attempt().to_string());
                    async { Ok(()) }
                },
            )
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run: RunId = bench.enqueue("once", json!({})).await;
        die_at_commit(&bench, 1, Fault::HangBefore).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(attempts.all(), ["1", "1"]);
        let counters = bench.progress(&run).await.counters();
        assert_eq!((counters.node_errors, counters.lost_workers), (0, 1));
    })
    .await;
}

/// An answer that comes while the run is about to park is not lost.
#[tokio::test]
async fn an_answer_that_meets_the_park_is_taken() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("gated")
            .add_node("a", logged("a", &log))
            .add_interrupt_node("gate", logged("gate", &log))
            .add_edge("a", "gate")
            .set_entry_point("a")
            .set_finish_point("gate");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("gated", json!({})).await;
        let early = bench.signal(&run, Address::Gate("gate".to_owned()), json!(true)).await;
        assert!(matches!(early, holdpoint_storage::SignalReply::Kept { .. }), "{early:?}");
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), ["a", "gate"]);
    })
    .await;
}
