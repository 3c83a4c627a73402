//! Failures: each ends its run once, says why and where, and harms nothing else.

use std::{
    fmt,
    future::{Ready, ready},
    sync::Arc,
    time::Duration,
};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Event, NodeContext, NodeError, NodeOptions, Question, ReasonCode, RetryPolicy, RunId,
    RunStatus, State, StateGraph, Update, limits::ERROR_CHARS_MAX,
};
use holdpoint_storage::{AppendReply, QuestionFilter, When};
use holdpoint_testkit::{Fault, FaultyStore};
use serde_json::json;

use crate::{
    bench::{Bench, Log, on_each_store},
    faults::{cancel, redrive},
    nodes::{line, logged},
};

/// A node that logs its name and fails its first attempts.
pub(crate) fn flaky(
    name: &'static str,
    failures: usize,
    log: &Log,
) -> impl Fn(NodeContext, State) -> Ready<Result<(), NodeError>> + Send + Sync + 'static {
    let log = log.clone();
    move |_, _| {
        log.add(name);
        let fails = log.count(name) <= failures;
        ready(if fails { Err(NodeError::retryable("not yet")) } else { Ok(()) })
    }
}

pub(crate) fn retries(attempts: u32) -> NodeOptions {
    NodeOptions::new().retry(RetryPolicy::fixed(attempts, Duration::from_millis(5)))
}

/// start → the named nodes, each already in the graph → join → report.
fn forked(graph: StateGraph, names: &[&str], log: &Log) -> StateGraph {
    let graph = graph
        .add_router("start")
        .add_router("join")
        .add_node("report", logged("report", log))
        .add_edge("join", "report")
        .set_entry_point("start")
        .set_finish_point("report");
    let tie =
        |graph: StateGraph, name: &&str| graph.add_edge("start", *name).add_edge(*name, "join");
    names.iter().fold(graph, tie)
}

async fn failed(bench: &Bench, run: &RunId, code: ReasonCode) {
    let events = bench.events(run).await;
    let reasons: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::RunFailed { reason } => Some(reason.code),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [code], "one terminal event");
    assert!(matches!(events.last(), Some(Event::RunFailed { .. })), "it is the last");
    let head = bench.head(run).await;
    assert_eq!((head.status(), head.reason()), (RunStatus::Failed, Some(code)));
}

/// PF-07: whichever way a run fails, it has one terminal event of one shape, and can be redriven.
#[tokio::test]
async fn every_way_to_fail_is_told_alike() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let mut all: Vec<(RunId, ReasonCode)> = Vec::new();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let lost = bench.enqueue("line", json!({})).await;
        for _ in 0..3 {
            bench.claim("w1").await.unwrap();
            bench.lose("w1").await;
        }
        all.push((lost, ReasonCode::CrashLoop));
        for (id, code) in [
            ("bad", ReasonCode::NodeError),
            ("loop", ReasonCode::StepLimit),
            ("conflict", ReasonCode::WriteConflict),
        ] {
            let bad = |_: NodeContext, _: State| async { Err::<(), _>(NodeError::permanent("no")) };
            let graph = StateGraph::new(id);
            let graph = match code {
                ReasonCode::NodeError => {
                    graph.add_node("n", bad).set_entry_point("n").set_finish_point("n")
                }
                ReasonCode::StepLimit => graph
                    .add_node("n", logged("n", &log))
                    .add_conditional_edge("n", |_| "n", ["n", holdpoint_graph::END])
                    .set_entry_point("n"),
                _ => forked(
                    graph.add_node("x", logged("x", &log)).add_node("y", logged("y", &log)),
                    &["x", "y"],
                    &log,
                ),
            };
            bench.add(graph.compile().unwrap());
            all.push((bench.enqueue(id, json!({})).await, code));
        }
        for (code, change) in [
            (ReasonCode::Undecodable, (|new| new.payload = b"\xff".to_vec()) as Change),
            (ReasonCode::Expired, |new| new.expires = Some(When::In(-1))),
            (ReasonCode::Expired, |new| new.deadline = Some(When::In(-1))),
        ] {
            let mut new = Bench::new_run("line", json!({}));
            change(&mut new);
            all.push((new.run.clone(), code));
            bench.put(new).await;
        }
        bench.config.max_steps = 5;
        while bench.work().await.is_some() {}
        for (run, code) in &all {
            failed(&bench, run, *code).await;
            redrive(&bench, run).await;
        }
    })
    .await;
}

type Change = fn(&mut holdpoint_storage::NewRun);

/// An error with a cause behind each cause.
#[derive(Debug)]
struct Deep(usize);

impl fmt::Display for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", self.0)
    }
}

impl std::error::Error for Deep {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        static CHAIN: std::sync::LazyLock<Vec<Deep>> =
            std::sync::LazyLock::new(|| (0..10_000).map(Deep).collect());
        CHAIN.get(self.0 + 1).map(|deep| deep as _)
    }
}

/// PF-08: recording an error never fails: it is cut, at a character, and the worker lives. So too
/// when the store is away while it is recorded.
#[tokio::test]
async fn an_error_of_any_size_is_recorded() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let errors: [fn() -> NodeError; 5] = [
            || NodeError::permanent("€".repeat(4 << 20)),
            || NodeError::permanent("a\0b\u{1b}[2J"),
            || NodeError::permanent(String::from_utf8_lossy(b"\xff\xfe\x80 broken")),
            || Deep(0).into(),
            || NodeError::permanent("x").with_code("\0".repeat(1 << 20)),
        ];
        for (at, error) in errors.into_iter().enumerate() {
            let id = format!("g{at}");
            let graph = StateGraph::new(&id)
                .add_node_with("n", retries(1), move |_: NodeContext, _: State| async move {
                    Err::<(), _>(error())
                })
                .set_entry_point("n")
                .set_finish_point("n");
            bench.add(graph.compile().unwrap());
            let run = bench.enqueue(&id, json!({})).await;
            let faulty = FaultyStore::new(bench.store.clone(), |name, at| match (name, at) {
                ("commit", 1) => Fault::Refuse,
                ("commit", 2) => Fault::LoseReply,
                _ => Fault::Pass,
            });
            let outcome = bench.over(Arc::new(faulty)).work().await;
            assert_eq!(outcome, Some(Outcome::Failed(ReasonCode::NodeError)));
            failed(&bench, &run, ReasonCode::NodeError).await;
            let error = bench.events(&run).await.into_iter().find_map(|event| match event {
                Event::NodeFailed { error, .. } => Some(error),
                _ => None,
            });
            let error = error.unwrap();
            let chars = error.message.chars().count() + error.code.chars().count();
            assert!(chars <= ERROR_CHARS_MAX + 300, "{at}: {chars} characters");
        }
        bench.add(line("line", &["a"], &log).compile().unwrap());
        bench.enqueue("line", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
    })
    .await;
}

/// PF-09: a fork ends once, whichever of its branches fails and however late; it never waits for
/// branches that have ended, and the journal keeps what became of each.
#[tokio::test]
async fn a_fork_never_waits_for_branches_that_ended() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let names = ["x", "y", "z"];
        for bad in names {
            let id = format!("fork-{bad}");
            let graph = names.iter().fold(StateGraph::new(&id), |graph, name| {
                // One ends at once, one after a retry, and the bad one fails for good.
                let failures = if *name == bad { 9 } else { usize::from(*name == "y") };
                graph.add_node_with(*name, retries(2), flaky(name, failures, &Log::default()))
            });
            bench.add(forked(graph, &names, &log).compile().unwrap());
            let run = bench.enqueue(&id, json!({})).await;
            bench.drain().await;
            failed(&bench, &run, ReasonCode::NodeError).await;
            let progress = bench.progress(&run).await;
            assert_eq!(progress.reason().unwrap().node.as_deref(), Some(bad));
            let ended = bench.count(&run, "node_completed").await;
            assert!(ended >= 2, "start, and at least one sibling: {ended}");
        }
        let graph = names.iter().fold(StateGraph::new("asks"), |graph, name| {
            graph.add_node(*name, |ctx: NodeContext, _: State| async move {
                ctx.ask("q", Question::new("?")).await?;
                Ok(())
            })
        });
        bench.add(forked(graph, &names, &log).compile().unwrap());
        let run = bench.enqueue("asks", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert!(matches!(cancel(&bench, &run).await, AppendReply::Done { .. }));
        assert_eq!(bench.work().await, None);
        assert_eq!(bench.count(&run, "run_cancelled").await, 1);
        assert!(
            bench
                .store
                .questions(&QuestionFilter::default(), None, 9)
                .await
                .unwrap()
                .rows
                .is_empty()
        );
        assert_eq!(log.count("report"), 0);
    })
    .await;
}

/// PF-10: what is too large is refused once, with node, key and limit; what was there stands.
#[tokio::test]
async fn a_result_that_is_too_large_is_not_computed_again() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .add_node("a", logged("a", &log))
            .add_node_with("big", retries(5), move |_: NodeContext, state: State| {
                node.add("big");
                async move {
                    let megabytes: usize = state.read("megabytes")?;
                    Ok(Update::new().set("blob", "x".repeat(megabytes << 20)))
                }
            })
            .add_edge("a", "big")
            .set_entry_point("a")
            .set_finish_point("big");
        bench.add(graph.compile().unwrap());
        for (megabytes, is_fine) in [(1, true), (5, false), (20, false)] {
            let before = log.count("big");
            let run = bench.enqueue("g", json!({ "megabytes": megabytes })).await;
            let outcome = bench.work().await.unwrap();
            assert_eq!(outcome == Outcome::Completed, is_fine);
            assert_eq!(log.count("big"), before + 1, "one attempt");
            let progress = bench.progress(&run).await;
            assert_eq!(progress.state().get("blob").is_some(), is_fine);
            if let Some(reason) = progress.reason() {
                assert_eq!(reason.node.as_deref(), Some("big"));
                for word in ["E_TOO_LARGE", "\"blob\"", "4194304"] {
                    assert!(reason.message.contains(word), "{}", reason.message);
                }
                assert_eq!(progress.state().get("last"), Some(&json!("a")));
            }
        }
    })
    .await;
}

/// PF-11: the text of an error is nobody's answer: what comes behind it does not run.
#[tokio::test]
async fn an_error_never_becomes_a_value() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("g")
            .add_node_with("bad", retries(1), |_: NodeContext, _: State| async {
                Err::<(), _>(NodeError::retryable("a secret text"))
            })
            .add_node("good", logged("good", &log));
        bench.add(forked(graph, &["bad", "good"], &log).compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::NodeError)));
        assert_eq!(log.all(), ["good"]);
        let progress = bench.progress(&run).await;
        assert_eq!(progress.reason().unwrap().node.as_deref(), Some("bad"));
        let events = bench.events(&run).await;
        let written = events.iter().filter(|event| match event {
            Event::NodeFailed { .. } | Event::RunFailed { .. } => false,
            other => format!("{other:?}").contains("secret"),
        });
        assert_eq!(written.count(), 0);
    })
    .await;
}

/// PF-12: a node fares the same alone and beside siblings: its retries, and the error that it
/// handles itself.
#[tokio::test]
async fn a_node_fares_alone_as_it_does_beside_others() {
    on_each_store(async |mut bench: Bench| {
        let mut seen = Vec::new();
        for siblings in [0, 1, 3] {
            let (log, handled) = (Log::default(), Log::default());
            let handler = handled.clone();
            let id = format!("g{siblings}");
            let graph = StateGraph::new(&id)
                .add_node_with("flaky", retries(3), flaky("flaky", 2, &log))
                .add_node("handles", move |_: NodeContext, _: State| {
                    let handler = handler.clone();
                    async move {
                        let answer: Result<u64, NodeError> = Err(NodeError::permanent("away"));
                        let answer = answer.or_else(|_| {
                            handler.add("handled");
                            Ok::<_, NodeError>(7_u64)
                        })?;
                        Ok(Update::new().set("answer", answer))
                    }
                })
                .add_edge("flaky", "handles");
            let others: Vec<String> = (0..siblings).map(|n| format!("s{n}")).collect();
            let graph = others.iter().fold(graph, |graph, name| {
                graph.add_node(name, |_: NodeContext, _: State| async { Ok(()) })
            });
            let graph = match siblings {
                0 => graph.set_entry_point("flaky"),
                _ => others.iter().fold(
                    graph.add_router("start").set_entry_point("start").add_edge("start", "flaky"),
                    |graph, name| graph.add_edge("start", name).set_finish_point(name),
                ),
            };
            bench.add(graph.set_finish_point("handles").compile().unwrap());
            let run = bench.enqueue(&id, json!({})).await;
            bench.drain().await;
            assert_eq!(bench.status(&run).await, RunStatus::Completed);
            let state = bench.state(&run).await;
            let failed = bench.count(&run, "node_failed").await;
            seen.push((log.all(), handled.all(), failed, state.get("answer").cloned()));
        }
        assert_eq!(seen[0].2, 2);
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    })
    .await;
}
