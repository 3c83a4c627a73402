//! Runs that begin at a checkpoint of another: what is kept, what is asked again, how deep it is.

use holdpoint_graph::{
    Beginning, CheckpointStart, CompiledGraph, Engine, Event, Gate, Next, NodeContext, NodeError,
    NodeOptions, Origin, Patch, Progress, Question, Reason, ReasonCode, RunId, RunPayload, State,
    StateGraph, Update,
    limits::{FORK_DEPTH_MAX, JSON_DEPTH_MAX},
};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, plain, step};

/// A run of its own that begins where `run` stands.
fn forked(run: &Driver, patches: Vec<Patch>) -> Driver {
    let origin =
        Origin { run: RunId::new("run-1").unwrap(), seq: run.progress.seq() - 1, is_replay: false };
    let begin = Beginning::Checkpoint { origin, progress: Box::new(run.progress.clone()), patches };
    let engine = Engine::new(run.engine.graph().clone(), RunId::new("run-2").unwrap());
    let event = engine.started(begin, 1_000);
    let mut forked = Driver::resumed(run.engine.graph(), &[event]);
    forked.engine = engine;
    forked
}

fn gated() -> CompiledGraph {
    plain("g", &[("a", "b")])
        .add_node_with("c", NodeOptions::new().gate(Gate::open("c")), step)
        .add_edge("b", "c")
        .set_finish_point("c")
        .compile()
        .unwrap()
}

#[test]
fn a_fork_goes_on_behind_the_checkpoint_with_the_edited_state() {
    let mut run = Driver::start(&gated(), json!({}));
    run.run_node("a");
    let mut forked = forked(&run, vec![Patch::set("extra", 1)]);
    assert_eq!(forked.ready(), ["b"]);
    forked.run();
    assert_eq!((forked.walked().as_str(), forked.value("extra")), ("a b", json!(1)));
    assert_eq!(forked.progress.steps(), 1, "its steps are its own");
    assert_eq!(forked.progress.origin().unwrap().run.as_str(), "run-1");
    assert_eq!(run.walked(), "a", "the original is untouched");
}

#[test]
fn an_open_gate_asks_again_and_an_answered_one_does_not() {
    let mut run = Driver::start(&gated(), json!({}));
    run.run();
    let asked = run.asked();
    let again = forked(&run, vec![]);
    assert_eq!(again.next(), Next::Wait { wake_at_ms: None, is_timer: false });
    assert_eq!(again.open().len(), 1);
    run.answer(&asked, json!("go"));
    let mut answered = forked(&run, vec![]);
    assert_eq!(answered.run_to_end().walked(), "a b c");
}

#[test]
fn a_fork_of_a_failed_run_tries_again() {
    let node = |_: NodeContext, state: State| async move {
        match state.get("fixed") {
            Some(_) => Ok(Update::new()),
            None => Err(NodeError::permanent("broken")),
        }
    };
    let graph = StateGraph::new("g").add_node("a", node).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_to_failure();
    let mut forked = forked(&run, vec![Patch::set("fixed", true)]);
    forked.run_to_end();
}

#[test]
fn a_checkpoint_before_the_beginning_is_none() {
    let engine = Engine::new(gated(), RunId::new("run-2").unwrap());
    let origin = Origin { run: RunId::new("run-1").unwrap(), seq: 0, is_replay: true };
    let progress = Box::new(Progress::new());
    let begin = Beginning::Checkpoint { origin, progress, patches: vec![] };
    let fault = Progress::new().apply(&engine.started(begin, 10)).unwrap_err();
    assert!(fault.to_string().contains("before its run began"), "{fault}");
}

#[test]
fn a_run_that_failed_before_it_began_begins_after_a_redrive() {
    let engine = Engine::new(gated(), RunId::new("run-1").unwrap());
    let mut progress = Progress::new();
    let reason = Reason { code: ReasonCode::Expired, message: "too late".to_owned(), node: None };
    progress.apply(&Event::RunFailed { reason }).unwrap();
    progress.apply(&Event::Redriven { by: "ann".to_owned(), max_steps: None }).unwrap();
    assert!(!progress.is_begun());
    progress.apply(&engine.start(&State::new(), State::new(), 10)).unwrap();
    assert!(matches!(engine.next(&progress, 0), Next::Run(_)));
}

/// `levels` lists inside one another.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]))
}

/// The deepest fork over the deepest state, with the deepest recorded step and answer, is still
/// readable as a snapshot and inside the envelope of another run.
#[test]
fn the_deepest_position_can_be_stored_and_forked() {
    async fn leaf(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
        let _: Value = ctx.step("deep", || async { Ok(nested(JSON_DEPTH_MAX)) }).await?;
        let _ = ctx.ask("deep", Question::new("?")).await?;
        let _ = ctx.ask("more", Question::new("?")).await?;
        Ok(Update::new())
    }
    let mut graph = StateGraph::new("deep").with_schema(lists()).set_entry_point("f0");
    for level in 0..FORK_DEPTH_MAX {
        let (here, side) = (format!("f{level}"), format!("side{level}"));
        graph = graph.add_router(&here).add_node(&side, step).set_finish_point(&side);
        graph = graph.add_edge(&here, format!("f{}", level + 1)).add_edge(&here, side);
    }
    let last = format!("f{FORK_DEPTH_MAX}");
    let graph = graph.add_node(&last, leaf).set_finish_point(last).compile().unwrap();
    let mut run = Driver::start(&graph, json!({ "deep": nested(JSON_DEPTH_MAX - 1) }));
    run.run();
    run.answer(&run.asked(), nested(JSON_DEPTH_MAX));
    run.run();
    let origin = Origin { run: RunId::new("run-1").unwrap(), seq: 1, is_replay: true };
    let progress = Box::new(run.progress.clone());
    let mut payload = RunPayload::new(State::new());
    payload.checkpoint = Some(CheckpointStart { origin, progress, patches: vec![] });
    assert_eq!(RunPayload::decode(&payload.encode()).unwrap(), payload);
    forked(&run, vec![]);
    run.answer(&run.asked(), json!(null));
    run.run_to_end();
}
