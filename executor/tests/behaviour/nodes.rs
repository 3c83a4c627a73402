//! Nodes: values, errors, panics, limits.

use std::{
    collections::BTreeMap,
    future::{Ready, ready},
    time::Duration,
};

use holdpoint_executor::{GraphResolver, Outcome, ResolveError};
use holdpoint_graph::{
    CompiledGraph, Event, Fingerprint, GraphId, NodeContext, NodeError, NodeOptions, ReasonCode,
    RetryPolicy, RunStatus, State, StateGraph, Update,
};
use holdpoint_storage::Enqueued;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::bench::{Bench, Log, on_each_store};

/// A chain of nodes that log their names and write `last`.
pub(crate) fn line(id: &str, names: &[&'static str], log: &Log) -> StateGraph {
    let mut graph = StateGraph::new(id).set_entry_point(names[0]);
    for name in names {
        graph = graph.add_node(*name, logged(name, log));
    }
    for pair in names.windows(2) {
        graph = graph.add_edge(pair[0], pair[1]);
    }
    graph.set_finish_point(*names.last().unwrap())
}

/// A node that logs its name and writes it to `last`.
pub(crate) fn logged(
    name: &'static str,
    log: &Log,
) -> impl Fn(NodeContext, State) -> Ready<Result<Update, NodeError>> + Send + Sync + 'static {
    let log = log.clone();
    move |_, _| {
        log.add(name);
        ready(Ok(Update::new().set("last", name)))
    }
}

/// T2: a retry repeats the failed node only, and the run shows the error meanwhile.
#[tokio::test]
async fn a_retry_repeats_the_failed_node_only() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let flaky = log.clone();
        let retry = RetryPolicy::fixed(5, Duration::from_millis(50));
        let graph = StateGraph::new("line")
            .add_node("charge", logged("charge", &log))
            .add_node_with(
                "flaky",
                NodeOptions::new().retry(retry),
                move |ctx: NodeContext, _: State| {
                    flaky.add("flaky");
                    async move {
                        if ctx.attempt() < 3 {
                            return Err(NodeError::retryable("the service is away"));
                        }
                        Ok(())
                    }
                },
            )
            .add_edge("charge", "flaky")
            .set_entry_point("charge")
            .set_finish_point("flaky");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("line", json!({})).await;
        let outcome = bench.work().await.unwrap();
        assert!(matches!(outcome, Outcome::Rescheduled { .. }), "{outcome:?}");
        let head = bench.head(&run).await;
        assert_eq!(head.status(), RunStatus::Scheduled);
        assert!(head.due_at_ms().is_some());
        let progress = bench.progress(&run).await;
        let task = progress.tasks().remove(0);
        assert_eq!(task.inner.error().unwrap().message, "the service is away");
        assert_eq!(task.inner.attempt(), 2);
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!((log.count("charge"), log.count("flaky")), (1, 3));
    })
    .await;
}

#[tokio::test]
async fn two_attempts_are_two_and_retry_after_is_kept() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let retry = RetryPolicy::fixed(2, Duration::from_secs(3_600));
        let graph = StateGraph::new("g")
            .add_node_with("n", NodeOptions::new().retry(retry), move |_: NodeContext, _: State| {
                node.add("n");
                async { Err::<(), _>(NodeError::retry_after(Duration::from_millis(20), "later")) }
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        bench.drain().await;
        assert_eq!(log.count("n"), 2);
        assert_eq!(bench.head(&run).await.reason(), Some(ReasonCode::NodeError));
    })
    .await;
}

#[derive(Serialize, Deserialize)]
struct Reading {
    count: u64,
    value: f64,
}

/// T7: NaN is refused with its path and leaves the checkpoint before it; large integers are exact.
#[tokio::test]
async fn a_value_that_would_be_lost_is_refused() {
    on_each_store(async |mut bench: Bench| {
        let graph = StateGraph::new("g")
            .add_node("big", |_: NodeContext, _: State| async {
                Ok(Update::new().set("big", 9_007_199_254_740_993_u64).set("seven", 7))
            })
            .add_node("nan", |_: NodeContext, _: State| async {
                let reading = Reading { count: 7, value: f64::NAN };
                Ok(Update::new().set("reading", BTreeMap::from([("inner", reading)])))
            })
            .add_edge("big", "nan")
            .set_entry_point("big")
            .set_finish_point("nan");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({ "u": 18_446_744_073_709_551_615_u64 })).await;
        let outcome = bench.work().await.unwrap();
        assert_eq!(outcome, Outcome::Failed(ReasonCode::NodeError));
        let progress = bench.progress(&run).await;
        let reason = progress.reason().unwrap();
        assert!(reason.message.contains("reading.inner.value"), "{}", reason.message);
        assert_eq!(
            serde_json::to_string(progress.state()).unwrap(),
            r#"{"big":9007199254740993,"seven":7,"u":18446744073709551615}"#
        );
    })
    .await;
}

/// T8: checkpoints are folds, so each shows its own moment.
#[tokio::test]
async fn each_checkpoint_shows_its_own_moment() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a", "b", "c"], &log).compile().unwrap());
        let run = bench.enqueue("line", json!({})).await;
        bench.work().await.unwrap();
        let events = bench.events(&run).await;
        let mut seen = Vec::new();
        for end in 1..=events.len() {
            let progress = holdpoint_graph::Progress::fold(&events[..end]).unwrap();
            seen.extend(progress.state().get("last").and_then(|v| v.as_str().map(str::to_owned)));
        }
        seen.dedup();
        assert_eq!(seen, ["a", "b", "c"]);
    })
    .await;
}

/// T13: an idempotency key gives one run, and another payload is a conflict.
#[tokio::test]
async fn a_key_gives_one_run() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let Enqueued::Created { run, .. } = bench.enqueue_with_key("k", json!({ "x": 1 })).await
        else {
            panic!("not created");
        };
        let again = bench.enqueue_with_key("k", json!({ "x": 1 })).await;
        assert!(matches!(again, Enqueued::Existing { run: known, .. } if known == run));
        let other = bench.enqueue_with_key("k", json!({ "x": 2 })).await;
        assert!(matches!(other, Enqueued::KeyConflict { run: known } if known == run));
        bench.drain().await;
        assert_eq!(log.count("a"), 1);
    })
    .await;
}

/// T16: a reader that encodes every event of wide states sees all of them, without a gap.
#[tokio::test]
async fn events_are_snapshots_that_can_be_read_while_the_run_moves() {
    on_each_store(async |mut bench: Bench| {
        let names: Vec<String> = (0..20).map(|n| format!("n{n}")).collect();
        let mut graph = StateGraph::new("wide").set_entry_point("n0").set_finish_point("n19");
        for (at, name) in names.iter().enumerate() {
            graph = graph.add_node(name, move |_: NodeContext, _: State| async move {
                let keys = (0..2_000).map(|key| (format!("k{key}"), json!(at)));
                Ok(keys.fold(Update::new(), |update, (key, value)| update.set(key, value)))
            });
            if let Some(next) = names.get(at + 1) {
                graph = graph.add_edge(name, next);
            }
        }
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("wide", json!({})).await;
        let work = bench.clone();
        let working = tokio::spawn(async move { work.work().await });
        let mut seen = 0;
        loop {
            let part = bench.store.journal(&run, seen, 1_000).await.unwrap().unwrap();
            assert_eq!(part.from, seen);
            seen += part.records.len() as u64;
            if part.head.status().is_terminal() && seen == part.head.seq {
                break;
            }
            bench.store.changed(&run, Duration::from_millis(200)).await;
        }
        assert_eq!(working.await.unwrap(), Some(Outcome::Completed));
        assert_eq!(bench.count(&run, "node_completed").await, 20);
    })
    .await;
}

/// A resolver that panics or gives another graph costs the run, never the process.
#[tokio::test]
async fn a_bad_resolver_fails_the_run_only() {
    struct Bad(Option<CompiledGraph>);
    impl GraphResolver for Bad {
        fn resolve(
            &self,
            _: &GraphId,
            _: Option<&Fingerprint>,
        ) -> Result<CompiledGraph, ResolveError> {
            Ok(self.0.clone().expect("a resolver's own bug"))
        }
    }
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let other = line("other", &["b"], &log).compile().unwrap();
        for (resolver, word) in [(Bad(None), "own bug"), (Bad(Some(other)), "E_GRAPH_MISMATCH")] {
            let run = bench.enqueue("line", json!({})).await;
            let claimed = bench.claim("w1").await.unwrap();
            let executor = holdpoint_executor::QueuedExecutor::new(
                bench.store.clone(),
                std::sync::Arc::new(resolver),
            );
            let outcome = executor.execute(claimed).await;
            assert_eq!(outcome, Outcome::Failed(ReasonCode::IncompatibleGraph));
            let events = bench.events(&run).await;
            let Some(Event::RunFailed { reason }) = events.last() else { panic!("{events:?}") };
            assert!(reason.message.contains(word), "{}", reason.message);
        }
        assert!(log.all().is_empty());
    })
    .await;
}

/// A node that takes too long fails with its own code, and may run again.
#[tokio::test]
async fn a_node_past_its_time_is_dropped() {
    on_each_store(async |mut bench: Bench| {
        let options =
            NodeOptions::new().timeout(Duration::from_millis(20)).retry(RetryPolicy::once());
        let graph = StateGraph::new("slow")
            .add_node_with("n", options, |_: NodeContext, _: State| async {
                std::future::pending::<()>().await;
                Ok(())
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("slow", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::NodeError)));
        let events = bench.events(&run).await;
        let code = events.iter().find_map(|event| match event {
            Event::NodeFailed { error, .. } => Some(error.code.as_str()),
            _ => None,
        });
        assert_eq!(code, Some("node_timeout"));
    })
    .await;
}
