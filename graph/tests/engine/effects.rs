//! Unsafe effects whose outcome is unknown: asked about, and never repeated silently.

use holdpoint_graph::{
    CompiledGraph, Effect, Event, InterruptKind, Next, NodeContext, NodeError, NodeOptions,
    Question, State, StateGraph, TaskRef, Update,
};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, plain, step};

fn unsafe_node() -> CompiledGraph {
    StateGraph::new("g")
        .with_schema(lists())
        .add_node_with("charge", NodeOptions::new().effect(Effect::Unsafe), step)
        .add_node("c", step)
        .set_entry_point("charge")
        .add_edge("charge", "c")
        .set_finish_point("c")
        .compile()
        .unwrap()
}

fn task(run: &Driver) -> TaskRef {
    run.progress.tasks().first().unwrap().task.clone()
}

/// The run after the worker died inside the unsafe node.
fn uncertain() -> Driver {
    let mut run = Driver::start(&unsafe_node(), json!({}));
    run.begin(&task(&run));
    run.lose_worker();
    let open = run.progress.question(&run.asked()).unwrap();
    assert_eq!((open.kind, open.key.as_deref()), (InterruptKind::Uncertain, None));
    assert_eq!(open.allowed, ["retry", "result", "skip", "fail"]);
    assert_eq!(run.next(), Next::Wait { wake_at_ms: None, is_timer: false });
    run
}

fn answered(answer: Value) -> Driver {
    let mut run = uncertain();
    run.answer(&run.asked(), answer);
    run
}

#[test]
fn a_node_that_began_and_did_not_end_is_asked_about() {
    assert_eq!(answered(json!("retry")).run_to_end().walked(), "charge c");
    assert_eq!(answered(json!({ "result": { "path": "told" } })).run_to_end().walked(), "told c");
    assert_eq!(answered(json!("skip")).run_to_end().walked(), "c");
    let reason = answered(json!("fail")).run_to_failure();
    assert!(reason.message.contains("uncertain"), "{}", reason.message);
}

#[test]
fn a_result_that_is_no_update_is_refused_and_nothing_is_consumed() {
    let mut run = uncertain();
    let id = run.asked();
    assert!(run.try_answer(&id, json!({ "result": 7 })).is_err());
    assert!(run.try_answer(&id, json!("maybe")).is_err());
    assert_eq!(run.asked(), id);
}

#[test]
fn it_is_asked_once_and_again_after_another_loss() {
    let mut run = uncertain();
    let first = run.asked();
    run.recover();
    assert_eq!(run.asked(), first, "an open question is not asked twice");
    run.answer(&first, json!("retry"));
    run.begin(&task(&run));
    run.lose_worker();
    assert_ne!(run.asked(), first);
}

#[test]
fn a_redrive_does_not_forget_it() {
    let mut run = uncertain();
    let first = run.asked();
    run.apply(Event::RunParked { wake_at_ms: None });
    let reason = holdpoint_graph::Reason {
        code: holdpoint_graph::ReasonCode::Expired,
        message: "late".to_owned(),
        node: None,
    };
    run.apply(Event::RunFailed { reason });
    run.redrive(None);
    run.recover();
    assert_ne!(run.asked(), first);
    run.answer(&run.asked(), json!("skip"));
    assert_eq!(run.run_to_end().walked(), "c");
}

#[test]
fn what_is_idempotent_runs_again_without_a_question() {
    let graph = plain("g", &[("a", "END")]).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.begin(&task(&run));
    run.lose_worker();
    assert_eq!(run.open(), []);
    assert_eq!(run.run_to_end().walked(), "a");
}

async fn pays(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    let paid = ctx.step_with("pay", Effect::Unsafe, || async { Ok("paid".to_owned()) }).await?;
    Ok(Update::new().set("paid", paid))
}

/// The run after the worker died inside the unsafe step.
fn uncertain_step() -> Driver {
    let graph = StateGraph::new("g").add_node("a", pays).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let (task, effect) = (task(&run), Effect::Unsafe);
    run.apply(Event::NodeStarted { task, step: Some("pay".to_owned()), effect });
    run.lose_worker();
    let open = run.progress.question(&run.asked()).unwrap();
    assert_eq!(open.key.as_deref(), Some("pay"));
    assert!(open.question.contains("a/pay"), "{}", open.question);
    run
}

#[test]
fn a_step_that_began_and_did_not_end_is_asked_about() {
    let paid = |answer: Value| {
        let mut run = uncertain_step();
        run.answer(&run.asked(), answer);
        run.run_to_end();
        run.value("paid")
    };
    assert_eq!(paid(json!("retry")), json!("paid"));
    assert_eq!(paid(json!({ "result": "by hand" })), json!("by hand"));
    let mut run = uncertain_step();
    run.answer(&run.asked(), json!("fail"));
    assert!(run.run_to_failure().message.contains("uncertain"));
    let mut run = uncertain_step();
    run.answer(&run.asked(), json!("skip"));
    let reason = run.run_to_failure();
    assert!(reason.message.contains("another type"), "null is no text: {}", reason.message);
}

#[test]
fn an_unsafe_node_that_asks_is_not_uncertain_afterwards() {
    async fn asks(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
        Ok(Update::new().set("answer", ctx.ask("q", Question::new("?")).await?.value))
    }
    let options = NodeOptions::new().effect(Effect::Unsafe);
    let graph = StateGraph::new("g").add_node_with("a", options, asks).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run();
    run.apply(Event::RunParked { wake_at_ms: None });
    run.answer(&run.asked(), json!(1));
    run.recover();
    assert_eq!(run.open(), [], "it was suspended on purpose");
    run.run_to_end();
    assert_eq!(run.value("answer"), json!(1));
}

/// However the run lost its owner while the node slept.
#[test]
fn an_unsafe_node_that_sleeps_is_not_uncertain_afterwards() {
    for rest in [
        Event::RunParked { wake_at_ms: Some(9_000) },
        Event::RunRescheduled { until_ms: 9_000 },
        Event::WorkerLost {
            worker: holdpoint_graph::WorkerId::new("w").unwrap(),
            epoch: 1,
            claimed_at_ms: 0,
            lost_at_ms: 1,
            evidence: "signal 9".to_owned(),
        },
    ] {
        let mut run = Driver::start(&unsafe_node(), json!({}));
        let task = task(&run);
        run.begin(&task);
        run.apply(Event::NodeSlept { task, until_ms: 9_000 });
        run.apply(rest);
        run.recover();
        assert_eq!(run.open(), []);
        assert_eq!(run.next(), Next::Wait { wake_at_ms: Some(9_000), is_timer: true });
        run.now_ms = 9_000;
        assert_eq!(run.run_to_end().walked(), "charge c");
    }
}

/// A worker without the graph puts a run off before anybody has looked what its last owner began.
#[test]
fn a_run_that_is_put_off_stays_uncertain() {
    let mut run = Driver::start(&unsafe_node(), json!({}));
    run.begin(&task(&run));
    run.apply(Event::RunRescheduled { until_ms: 9_000 });
    run.recover();
    assert_eq!(run.progress.question(&run.asked()).unwrap().kind, InterruptKind::Uncertain);
}
