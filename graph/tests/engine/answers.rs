//! A node's own questions, stale runs, and what a journal may not hold.

use std::time::Duration;

use holdpoint_graph::{
    CompiledGraph, Event, InterruptKind, Next, NodeContext, NodeError, Outcome, Progress, Question,
    State, StateGraph, Update,
};
use serde_json::json;

use crate::driver::{Driver, lists, plain};

async fn asks_twice(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    let n: i64 = ctx.step("n", || async { Ok(7) }).await?;
    let first = ctx.ask("first", Question::new("First?")).await?;
    let second = ctx.ask("second", Question::new("Second?")).await?;
    Ok(Update::new().set("n", n).set("answers", (first.value, second.value)))
}

fn asking() -> CompiledGraph {
    let graph = StateGraph::new("g").with_schema(lists()).add_node("a", asks_twice);
    graph.set_entry_point("a").set_finish_point("a").compile().unwrap()
}

#[test]
fn a_node_asks_and_starts_again_from_its_top() {
    let mut run = Driver::start(&asking(), json!({}));
    assert_eq!(run.run(), Next::Wait { wake_at_ms: None, is_timer: false });
    let first = run.asked();
    let open = run.progress.question(&first).unwrap();
    assert_eq!((open.kind, open.key.as_deref()), (InterruptKind::Ask, Some("first")));
    run.answer(&first, json!(null));
    run.run();
    let second = run.asked();
    assert_ne!(first, second);
    run.answer(&second, json!(2));
    run.run_to_end();
    assert_eq!((run.value("answers"), run.value("n")), (json!([null, 2]), json!(7)));
    let steps = run.events.iter().filter(|event| matches!(event, Event::StepRecorded { .. }));
    assert_eq!(steps.count(), 1, "the step is recorded once");
}

#[test]
fn a_node_that_ends_with_an_open_ask_is_not_deterministic() {
    let mut run = Driver::start(&asking(), json!({}));
    run.run();
    let task = run.progress.tasks().first().unwrap().task.clone();
    let fault = run.engine.complete(&mut run.progress, &task, Update::new()).unwrap_err();
    assert_eq!(fault.code(), "NonDeterministicNode");
}

#[test]
fn a_redrive_keeps_answers_and_asks_open_ones_anew() {
    let mut run = Driver::start(&asking(), json!({}));
    run.run();
    run.answer(&run.asked(), json!(1));
    run.run();
    let second = run.asked();
    let reason = holdpoint_graph::Reason {
        code: holdpoint_graph::ReasonCode::Expired,
        message: "late".to_owned(),
        node: None,
    };
    run.apply(Event::RunFailed { reason });
    run.redrive(None);
    run.run();
    let again = run.asked();
    assert_ne!(second, again);
    run.answer(&again, json!(2));
    run.run_to_end();
    assert_eq!(run.value("answers"), json!([1, 2]));
}

#[test]
fn an_asks_deadline_answers_with_its_default_null_too() {
    async fn node(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
        let question = Question::new("?").deadline(Duration::from_secs(1), json!(null));
        // A default that the schema does not allow is the author's own and taken.
        let question = question.schema(json!({ "type": "string" }));
        Ok(Update::new().set("answer", ctx.ask("q", question).await?.value))
    }
    let graph = StateGraph::new("g").add_node("a", node).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    let mut run = Driver::start(&graph, json!({ "answer": 1 }));
    run.run();
    let open = run.progress.question(&run.asked()).unwrap();
    assert_eq!((open.deadline_ms, open.default_answer.clone()), (Some(2_000), Some(json!(null))));
    let id = run.asked();
    let event = run.engine.expire(&mut run.progress, &id, 2_000);
    run.record(vec![event.expect("no question outlives its deadline")]);
    run.run_to_end();
    assert_eq!(run.value("answer"), json!(null));
}

#[test]
fn a_stale_run_waits_as_a_whole() {
    let graph = plain("g", &[("a", "END")]).compile().unwrap();
    for (answer, expect) in [("resume", Outcome::Resumed), ("cancel", Outcome::Cancelled)] {
        let mut run = Driver::start(&graph, json!({}));
        let event = run.engine.stale(&run.progress, 90_000_000, 5_000);
        run.apply(event);
        assert_eq!(run.next(), Next::Wait { wake_at_ms: None, is_timer: false });
        assert_eq!(run.progress.question(&run.asked()).unwrap().kind, InterruptKind::Stale);
        run.now_ms = 6_000;
        run.answer(&run.asked(), json!(answer));
        let Some(Event::InterruptAnswered { outcome, .. }) = run.events.last() else {
            panic!("the answer is recorded")
        };
        assert_eq!(*outcome, expect);
        assert_eq!(run.progress.fresh_at_ms(), Some(6_000));
        assert_eq!(run.ready(), ["a"]);
    }
}

/// An event that cannot follow is refused with its number and the reason.
fn refused(run: &Driver, event: &Event) -> String {
    let mut progress: Progress = run.progress.clone();
    progress.apply(event).expect_err("it does not follow").to_string()
}

#[test]
fn what_cannot_follow_is_refused() {
    let graph = plain("g", &[("a", "b"), ("b", "END")]).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let begun = refused(&run, &run.events[0].clone());
    assert_eq!(begun, "event 1 (run_started) does not follow: the run is under way");
    assert!(refused(&run, &Event::RunCompleted).contains("under way"));
    let redriven = Event::Redriven { by: "ann".to_owned(), max_steps: None };
    assert!(refused(&run, &redriven).contains("under way"));
    let joined = Event::BranchJoined { branch: vec![0], patches: vec![] };
    assert!(refused(&run, &joined).contains("no branch 0"));
    run.run_to_end();
    let completed = run.events.iter().find(|event| matches!(event, Event::NodeCompleted { .. }));
    assert!(refused(&run, completed.unwrap()).contains("is completed"));
    assert!(refused(&run, &Event::RunCancelled { by: "ann".to_owned() }).contains("completed"));
    let mut unborn = Progress::new();
    assert!(unborn.apply(completed.unwrap()).unwrap_err().to_string().contains("not begun"));
}

#[test]
fn nothing_follows_by_itself_where_a_run_has_ended() {
    let mut run = Driver::start(&asking(), json!({}));
    run.run();
    let asked = run.asked();
    run.apply(Event::RunCancelled { by: "ann".to_owned() });
    let before = run.progress.clone();
    assert_eq!(run.engine.settle(&mut run.progress, 0), (vec![], None));
    assert_eq!(run.engine.recover(&mut run.progress, 0), []);
    assert_eq!(run.engine.reroute(&mut run.progress), []);
    assert_eq!(run.engine.expire(&mut run.progress, &asked, i64::MAX), None);
    assert_eq!(run.progress, before);
}

#[test]
fn a_gate_is_not_opened_twice_nor_answered_before() {
    let mut run = Driver::start(&asking(), json!({}));
    run.run();
    let opened = run.events.last().unwrap().clone();
    assert!(refused(&run, &opened).contains("is open already"));
    run.answer(&run.asked(), json!(1));
    let answered = run.events.last().unwrap().clone();
    assert!(refused(&run, &answered).contains("is not open"));
}
