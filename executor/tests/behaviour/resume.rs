//! Checkpoints: a run goes on where it stood, with what it had, whoever takes it up and when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use holdpoint_executor::{Outcome, Runner};
use holdpoint_graph::{
    AppendReducer, KeyMapping, Namespace, NodeContext, Question, RunStatus, Send, SessionId, State,
    StateGraph, StateSchema, Update,
};
use holdpoint_storage::{Clock, QuestionFilter, SystemClock};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::Fault;
use serde_json::json;

use crate::{
    bench::{Bench, on_each_store},
    crashes::die_at_commit,
    nodes::logged,
    values::counting,
};

/// The host's clock, moved.
#[derive(Debug, Default)]
struct Moved(AtomicI64);

impl Clock for Moved {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms() + self.0.load(Ordering::SeqCst)
    }

    fn wall_us(&self) -> i64 {
        SystemClock.wall_us() + 1_000 * self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Instant {
        SystemClock.monotonic()
    }
}

/// CP-02: the newest checkpoint is the one with the highest number, whatever the clock said. (The
/// clock of SQLite is the host's; that of Redis is the server's, and its journal a list as well.)
#[tokio::test]
async fn a_clock_that_goes_back_repeats_nothing() {
    let clock = Arc::new(Moved::default());
    let config = SqliteConfig::new(Location::Memory, Namespace::new("test").unwrap());
    let config = SqliteConfig { clock: clock.clone(), ..config };
    let mut bench = Bench::new(Arc::new(SqliteStore::open(config).await.unwrap()));
    let log = bench.log();
    bench.add(counting("loop", 1, &log));
    let run = bench.enqueue("loop", json!({ "n": 6 })).await;
    die_at_commit(&bench, 3, Fault::HangAfter).await;
    clock.0.store(-3_600_000, Ordering::SeqCst);
    assert_eq!(bench.work().await, Some(Outcome::Completed));
    assert_eq!(log.count("count"), 6);
    assert_eq!(bench.state(&run).await.get("at"), Some(&json!(6)));
}

/// CP-08: branches that ended before one of them asked are not repeated after the restart of all.
#[tokio::test]
async fn a_fork_keeps_what_ended_beside_a_question() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("fan")
            .with_schema(StateSchema::new().with("items", AppendReducer))
            .add_router("plan")
            .add_node("work", move |ctx: NodeContext, state: State| {
                let log = node.clone();
                async move {
                    let index: u64 = state.read("index")?;
                    log.add(format!("work {index}"));
                    if index == 3 {
                        ctx.ask("q", Question::new("?")).await?;
                    }
                    Ok(Update::new().set("items", index))
                }
            })
            .add_node("collect", logged("collect", &log))
            .add_fan_edge(
                "plan",
                |_: &State| -> Vec<Send> {
                    (1..=5).map(|index| Send::new("work", json!({ "index": index }))).collect()
                },
                ["work"],
            )
            .add_edge("work", "collect")
            .set_entry_point("plan")
            .set_finish_point("collect");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("fan", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!(true)).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.state(&run).await.get("items"), Some(&json!([1, 2, 3, 4, 5])));
        for (name, times) in [("work 1", 1), ("work 2", 1), ("work 3", 2), ("work 4", 1)] {
            assert_eq!(log.count(name), times, "{name}");
        }
        assert_eq!(log.count("collect"), 1);
    })
    .await;
}

/// CP-09: while a run is parked every reader sees its question, and one answer is enough.
#[tokio::test]
async fn a_parked_run_always_shows_its_question() {
    const ROUNDS: usize = 200;
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("ask")
            .add_interrupt_node("gate", logged("gate", &log))
            .add_conditional_edge("gate", |_| "gate", ["gate", holdpoint_graph::END])
            .set_entry_point("gate");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("ask", json!({})).await;
        let (reader, looked_at) = (bench.clone(), run.clone());
        let (looks, mut looked) = tokio::sync::watch::channel(0_u64);
        let reading = tokio::spawn(async move {
            let mut seen = 0;
            loop {
                let before = reader.head(&looked_at).await;
                let page = reader
                    .store
                    .questions(&QuestionFilter::of_run(&looked_at), None, 9)
                    .await
                    .unwrap();
                let after = reader.head(&looked_at).await;
                let is_parked = before.status() == RunStatus::Parked;
                if is_parked && (before.seq, before.status()) == (after.seq, after.status()) {
                    assert_eq!(page.rows.len(), 1, "after event {}", before.seq);
                    seen += 1;
                }
                if after.status().is_terminal() {
                    return seen;
                }
                looks.send_modify(|looks| *looks += 1);
                tokio::task::yield_now().await;
            }
        });
        for round in 0..ROUNDS {
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            if round % 10 == 0 {
                // One look that began after the park.
                let now = *looked.borrow();
                looked.wait_for(|looks| *looks >= now + 2).await.unwrap();
            }
            bench.answer(&run, json!(true)).await;
        }
        crate::faults::cancel(&bench, &run).await;
        bench.work().await;
        assert!(reading.await.unwrap() >= ROUNDS / 10, "the reader saw a parked run");
        assert_eq!(log.count("gate"), ROUNDS - 1);
    })
    .await;
}

/// CP-14: the limit counts the run's own tasks: not those before it in the session, and none twice
/// for a crash.
#[tokio::test]
async fn the_step_limit_is_the_runs_own() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(counting("loop", 1, &log));
        bench.config.max_steps = 4;
        for (n, end) in [
            (3, RunStatus::Completed),
            (4, RunStatus::Completed),
            (5, RunStatus::Failed),
            (4, RunStatus::Completed),
        ] {
            let before = log.count("count");
            let run = bench.enqueue_in("s", "loop", json!({ "n": n, "at": 0 })).await;
            die_at_commit(&bench, 2, Fault::HangAfter).await;
            bench.drain().await;
            assert_eq!(bench.status(&run).await, end, "{n}");
            assert_eq!(log.count("count") - before, n.min(4));
            let progress = bench.progress(&run).await;
            assert_eq!(progress.steps(), n.min(4) as u64);
            if let Some(reason) = progress.reason() {
                assert_eq!(reason.node.as_deref(), Some("count"));
                assert_eq!(progress.state().get("at"), Some(&json!(4)));
            }
        }
    })
    .await;
}

/// CP-15: a fork from before a sub-graph's gate has the sub-graph's state of that moment, asks
/// again, and leaves the original as it is.
#[tokio::test]
async fn a_fork_into_a_sub_graph_has_its_state_of_then() {
    on_each_store(async |bench: Bench| {
        let node = |name: &'static str| {
            move |ctx: NodeContext, _: State| async move {
                let answer = ctx.answer().map(|answer| answer.value.clone());
                Ok(Update::new().set("path", answer.unwrap_or_else(|| name.into())))
            }
        };
        let lists = || StateSchema::new().with("path", AppendReducer);
        let inner = StateGraph::new("inner")
            .with_schema(lists())
            .add_node("s0", node("s0"))
            .add_interrupt_node("ask", node("ask"))
            .add_node("s1", node("s1"))
            .add_edge("s0", "ask")
            .add_edge("ask", "s1")
            .set_entry_point("s0")
            .set_finish_point("s1")
            .compile()
            .unwrap();
        let graph = StateGraph::new("outer")
            .with_schema(lists())
            .add_node("p0", node("p0"))
            .add_subgraph("sub", &inner, KeyMapping::new())
            .add_node("p1", node("p1"))
            .add_edge("p0", "sub")
            .add_edge("sub", "p1")
            .set_entry_point("p0")
            .set_finish_point("p1")
            .compile()
            .unwrap();
        let runner = || Runner::new(graph.clone(), bench.store.clone());
        let session = || SessionId::new("s").unwrap();
        let parked = runner().run(session(), State::new()).await.unwrap();
        let id = |progress: holdpoint_graph::Progress| {
            progress.open().next().map(|open| open.interrupt.clone()).unwrap()
        };
        let first = id(bench.progress(&parked.run_id).await);
        let done =
            runner().resume_with(session(), first.clone(), json!("yes"), "ann").await.unwrap();
        assert_eq!(done.state.get("path"), Some(&json!(["p0", "s0", "yes", "s1", "p1"])));
        let before = bench.events(&done.run_id).await;
        let opened = before.iter().position(|event| event.type_name() == "interrupt_opened");
        let at = opened.unwrap() as u64;
        let forked = runner().fork_from(done.run_id.clone(), at, State::new()).await.unwrap();
        assert_eq!(forked.status, RunStatus::Parked);
        assert_eq!(forked.state.get("path"), Some(&json!(["p0", "s0"])));
        let again = id(bench.progress(&forked.run_id).await);
        assert_ne!(again, first);
        let other = SessionId::new(forked.session_id).unwrap();
        let done = runner().resume_with(other, again, json!("no"), "ann").await.unwrap();
        assert_eq!(done.state.get("path"), Some(&json!(["p0", "s0", "no", "s1", "p1"])));
        assert_eq!(bench.events(&parked.run_id).await, before);
    })
    .await;
}
