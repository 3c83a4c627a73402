//! The runner: runs in this process, resumed, replayed, forked, streamed.

use std::sync::{Arc, Mutex};

use holdpoint_executor::{RunState, Runner, RunnerError, SpanId, SpanKind, StreamItem, Tracer};
use holdpoint_graph::{
    CompiledGraph, Gate, NodeOptions, Question, RunStatus, SessionId, State, StateGraph,
};
use serde_json::json;

use holdpoint_storage::QuestionFilter;

use crate::{
    bench::{Bench, Log, on_each_store},
    nodes::logged,
};

fn gated(log: &Log) -> CompiledGraph {
    StateGraph::new("gated")
        .add_node("start", logged("start", log))
        .add_interrupt_node("gate", logged("gate", log))
        .add_node("b", logged("b", log))
        .add_edge("start", "gate")
        .add_edge("gate", "b")
        .set_entry_point("start")
        .set_finish_point("b")
        .compile()
        .unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

async fn question(bench: &Bench, state: &RunState) -> holdpoint_graph::InterruptId {
    let page =
        bench.store.questions(&QuestionFilter::of_run(&state.run_id), None, 10).await.unwrap();
    page.rows[0].interrupt.clone()
}

#[tokio::test]
async fn a_run_parks_resumes_and_completes() {
    on_each_store(async |bench: Bench| {
        let log = bench.log();
        let runner = || Runner::new(gated(&log), bench.store.clone());
        let parked = runner().run(session("s"), State::new().with("x", 1)).await.unwrap();
        assert_eq!((parked.status, parked.current_node.as_str()), (RunStatus::Parked, "gate"));
        let again = runner().resume(session("s")).await.unwrap();
        assert_eq!((again.status, log.count("gate")), (RunStatus::Parked, 0));
        let id = question(&bench, &parked).await;
        let done = runner().resume_with(session("s"), id, json!("yes"), "ann").await.unwrap();
        assert_eq!(done.status, RunStatus::Completed);
        assert_eq!(log.all(), ["start", "gate", "b"]);
        let finished = runner().resume(session("s")).await.unwrap();
        assert_eq!(finished.run_id, done.run_id);
        let none = runner().resume(session("nobody")).await;
        assert!(matches!(none, Err(RunnerError::NoCheckpoint(_))), "{none:?}");
    })
    .await;
}

/// Whatever a runner was given it stored: an answer that did not fit was dropped when the run took
/// it, and one of two votes decided.
#[tokio::test]
async fn an_answer_by_a_runner_is_checked_like_any_other() {
    on_each_store(async |bench: Bench| {
        let log = bench.log();
        let gate = Gate::new("pay", Question::new("Pay?").quorum(2));
        let graph = StateGraph::new("pay")
            .add_node_with("pay", NodeOptions::new().gate(gate), logged("pay", &log))
            .set_entry_point("pay")
            .set_finish_point("pay")
            .compile()
            .unwrap();
        let runner = || Runner::new(graph.clone(), bench.store.clone());
        let parked = runner().run(session("s"), State::new()).await.unwrap();
        let id = question(&bench, &parked).await;
        let give = async |answer: serde_json::Value, by: &str| {
            runner().resume_with(session("s"), id.clone(), answer, by).await
        };
        let code = |said: Result<RunState, RunnerError>| match said {
            Err(RunnerError::Refused(refusal)) => refusal.code().as_str(),
            other => panic!("it was to be refused: {other:?}"),
        };
        assert_eq!(code(give(json!("yes"), "ann").await), "E_SCHEMA");
        assert_eq!(bench.store.inbox(&parked.run_id).await.unwrap(), []);
        let yes = || json!({ "approve": true });
        assert_eq!(give(yes(), "ann").await.unwrap().status, RunStatus::Parked, "one of two");
        assert_eq!(code(give(yes(), "ann").await), "E_VOTED");
        assert_eq!(give(yes(), "bob").await.unwrap().status, RunStatus::Completed);
        assert_eq!(log.all(), ["pay"]);
    })
    .await;
}

#[tokio::test]
async fn a_fork_asks_again_and_leaves_the_original_alone() {
    on_each_store(async |bench: Bench| {
        let log = bench.log();
        let runner = || Runner::new(gated(&log), bench.store.clone());
        let parked = runner().run(session("s"), State::new()).await.unwrap();
        let id = question(&bench, &parked).await;
        let done = runner().resume_with(session("s"), id, json!("yes"), "ann").await.unwrap();
        let before = bench.events(&done.run_id).await;
        // After event 3 the run stands before the gate: started, claimed, completed start.
        let update = State::new().with("edited", true);
        let forked = runner().fork_from(done.run_id.clone(), 3, update).await.unwrap();
        assert_eq!(forked.status, RunStatus::Parked);
        assert_eq!(forked.state.get("edited"), Some(&json!(true)));
        assert_ne!(forked.session_id, done.session_id);
        let replayed = runner().replay_from(done.run_id.clone(), 3).await.unwrap();
        assert_eq!((replayed.status, replayed.state.get("edited")), (RunStatus::Parked, None));
        assert_eq!(log.count("start"), 1);
        assert_eq!(bench.events(&done.run_id).await, before);
        let origin = bench.progress(&forked.run_id).await.origin().cloned().unwrap();
        assert_eq!((origin.run, origin.seq, origin.is_replay), (done.run_id, 3, false));
    })
    .await;
}

#[tokio::test]
async fn a_stream_shows_steps_in_their_order() {
    on_each_store(async |bench: Bench| {
        let log = bench.log();
        let runner = Runner::new(gated(&log), bench.store.clone());
        let mut stream = runner.stream();
        runner.run(session("s"), State::new()).await.unwrap();
        let mut seen = Vec::new();
        while let Some(item) = stream.next().await {
            let StreamItem::Event(event) = item else { panic!("a gap") };
            seen.push(format!("{} {}", event.kind, event.node_id.unwrap_or_default()));
        }
        let expected = [
            "node_start start",
            "node_end start",
            "checkpoint start",
            "edge_transition gate",
            "interrupt gate",
        ];
        assert_eq!(seen, expected);
    })
    .await;
}

#[derive(Default)]
struct Spans(Mutex<Vec<String>>);

impl Tracer for Spans {
    fn start(&self, session: &str, name: &str, _: SpanKind) -> SpanId {
        let mut spans = self.0.lock().unwrap();
        spans.push(format!("{session} {name}"));
        SpanId(spans.len() as u64 - 1)
    }

    fn end(&self, span: SpanId, error: Option<&str>) {
        let at = usize::try_from(span.0).unwrap();
        let text = format!(" ended {}", error.unwrap_or("well"));
        self.0.lock().unwrap()[at].push_str(&text);
    }
}

#[tokio::test]
async fn a_tracer_sees_the_graph_and_each_node() {
    on_each_store(async |bench: Bench| {
        let (log, spans) = (bench.log(), Arc::new(Spans::default()));
        let runner = Runner::new(gated(&log), bench.store.clone()).with_tracer(spans.clone());
        runner.run(session("s"), State::new()).await.unwrap();
        let seen = spans.0.lock().unwrap().clone();
        assert_eq!(seen, ["s graph:gated ended well", "s node:start ended well"]);
    })
    .await;
}
