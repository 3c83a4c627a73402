//! Gates: opened when reached, answered once, and never passed without a recorded decision.

use std::time::Duration;

use holdpoint_graph::{
    AnswerFault, CompiledGraph, END, Gate, InterruptKind, Next, NodeContext, NodeError,
    NodeOptions, Question, State, StateGraph, Update,
};
use serde_json::json;

use crate::driver::{Driver, lists, plain, step};

fn gated(gate: Gate) -> NodeOptions {
    NodeOptions::new().gate(gate)
}

/// a → gate on c; a rejection goes to `rejected`.
fn ask() -> CompiledGraph {
    let gate = Gate::new("c", Question::new("Go on after {path}?")).reject_to("rejected");
    StateGraph::new("ask")
        .with_schema(lists())
        .add_node("a", step)
        .add_node_with("c", gated(gate), step)
        .add_node("rejected", step)
        .set_entry_point("a")
        .add_edge("a", "c")
        .set_finish_point("c")
        .set_finish_point("rejected")
        .compile()
        .unwrap()
}

#[test]
fn a_gate_opens_when_it_is_reached_and_shows_the_state() {
    let mut run = Driver::start(&ask(), json!({}));
    assert_eq!(run.open(), []);
    assert_eq!(run.run(), Next::Wait { wake_at_ms: None, is_timer: false });
    let open = run.progress.question(&run.asked()).unwrap();
    assert_eq!((open.kind, open.gate.as_deref()), (InterruptKind::Gate, Some("c")));
    assert_eq!(open.question, "Go on after [\"a\"]?");
    assert_eq!(open.allowed, ["approve", "reject"]);
    assert_eq!(open.opened_at_ms, 1_000);
}

#[test]
fn an_approval_runs_the_node_and_a_rejection_the_other() {
    let mut run = Driver::start(&ask(), json!({}));
    run.run();
    run.answer(&run.asked(), json!({ "approve": true }));
    assert_eq!(run.run_to_end().walked(), "a c");
    let mut run = Driver::start(&ask(), json!({}));
    run.run();
    run.answer(&run.asked(), json!({ "approve": false }));
    assert_eq!(run.run_to_end().walked(), "a rejected");
}

#[test]
fn an_answer_counts_once_and_must_fit() {
    let mut run = Driver::start(&ask(), json!({}));
    run.run();
    let id = run.asked();
    let unfit = run.try_answer(&id, json!("yes"));
    assert!(matches!(unfit, Err(AnswerFault::Unfit(_))), "{unfit:?}");
    assert_eq!(run.asked(), id, "a refused answer consumes nothing");
    run.answer(&id, json!({ "approve": true }));
    let late = run.try_answer(&id, json!({ "approve": true }));
    assert!(matches!(late, Err(AnswerFault::NotOpen(_))), "{late:?}");
}

#[test]
fn an_open_gate_hands_any_answer_to_the_node() {
    let node = |ctx: NodeContext, _: State| async move {
        Ok::<_, NodeError>(Update::new().set("answer", &ctx.answer().unwrap().value))
    };
    let graph = StateGraph::new("g").add_interrupt_node("a", node).set_entry_point("a");
    let graph = graph.set_finish_point("a").compile().unwrap();
    for answer in [json!(null), json!(false), json!(""), json!({}), json!({ "ok": false })] {
        let mut run = Driver::start(&graph, json!({ "answer": 0 }));
        run.answer(&run.asked(), answer.clone());
        run.run_to_end();
        assert_eq!(run.value("answer"), answer);
    }
}

#[test]
fn a_second_gate_opens_after_the_first_with_an_id_of_its_own() {
    let graph = plain("g", &[("a", "b")])
        .add_node_with("one", gated(Gate::open("one")), step)
        .add_node_with("two", gated(Gate::open("two")), step)
        .add_edge("b", "one")
        .add_edge("one", "two")
        .set_finish_point("two")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run();
    let first = run.asked();
    run.answer(&first, json!(true));
    run.run();
    let second = run.asked();
    assert_ne!(first, second);
    assert!(run.try_answer(&first, json!(true)).is_err(), "the old answer passes nothing");
    assert_eq!(run.walked(), "a b one");
}

#[test]
fn ids_are_stable_and_new_in_every_round() {
    let looped = |state: &State| match state.get("path").and_then(|p| p.as_array()).map(Vec::len) {
        Some(2) => END,
        _ => "a",
    };
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node_with("a", gated(Gate::open("a")), step)
        .set_entry_point("a")
        .add_conditional_edge("a", looped, ["a", END])
        .compile()
        .unwrap();
    let opened = || {
        let mut run = Driver::start(&graph, json!({}));
        let first = run.asked();
        run.answer(&first, json!(1));
        run.run();
        let second = run.asked();
        assert_ne!(first, second, "a new round asks under a new id");
        (first, second)
    };
    assert_eq!(opened(), opened(), "the same run computes the same ids");
}

#[test]
fn parallel_gates_have_ids_of_their_own_and_open_at_once() {
    let graph = plain("g", &[("a", "c"), ("c", "end"), ("end", "END")])
        .add_node_with("l", gated(Gate::open("l")), step)
        .add_node_with("r", gated(Gate::open("r")), step)
        .add_edge("a", "l")
        .add_edge("a", "r")
        .add_edge("l", "end")
        .add_edge("r", "end")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_node("a");
    assert_eq!(run.open().len(), 2, "both are open while c still may run");
    assert_eq!(run.ready(), ["c"]);
    assert_eq!(run.run(), Next::Wait { wake_at_ms: None, is_timer: false });
    let right = run.progress.open().find(|open| open.gate.as_deref() == Some("r")).unwrap();
    run.answer(&right.interrupt.clone(), json!(1));
    assert_eq!(run.ready(), ["r"], "only the branch that was answered goes on");
    run.run();
    run.answer(&run.asked(), json!(1));
    run.run_to_end();
    assert_eq!(run.walked(), "a c l r end");
}

#[test]
fn a_redrive_asks_again_under_a_new_id_and_an_answered_gate_is_not_asked() {
    let failing = |_: NodeContext, state: State| async move {
        match state.get("fixed") {
            Some(_) => Ok(Update::new().set("path", "fails")),
            None => Err(NodeError::permanent("broken")),
        }
    };
    let graph = plain("g", &[("a", "end"), ("end", "END")])
        .add_node_with("asks", gated(Gate::open("asks")), step)
        .add_node_with("fails", gated(Gate::open("fails")), failing)
        .add_edge("a", "asks")
        .add_edge("a", "fails")
        .add_edge("asks", "end")
        .add_edge("fails", "end");
    // Without the plain edge a → end the join is the same.
    let graph = graph.compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run();
    let id = |run: &Driver, gate: &str| {
        let open = run.progress.open().find(|open| open.gate.as_deref() == Some(gate));
        open.map(|open| open.interrupt.clone())
    };
    let asked = id(&run, "asks").unwrap();
    run.answer(&id(&run, "fails").unwrap(), json!("go"));
    assert_eq!(run.run_to_failure().message, "broken");
    assert_eq!(run.open(), [], "the open question closes with the run");
    run.redrive(None);
    let again = id(&run, "asks").unwrap();
    assert_ne!(again, asked, "asked anew");
    assert_eq!(id(&run, "fails"), None, "the answered gate stays answered");
    assert_eq!(run.ready(), ["fails"]);
    assert!(run.try_answer(&asked, json!(1)).is_err(), "the old id is closed");
}

#[test]
fn the_deadline_answers_with_the_default() {
    let question =
        Question::new("Now?").deadline(Duration::from_secs(5), json!({ "approve": false }));
    let gate = Gate::new("a", question).reject_to("no");
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node_with("a", gated(gate), step)
        .add_node("no", step)
        .set_entry_point("a")
        .set_finish_point("a")
        .set_finish_point("no")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    assert_eq!(run.next(), Next::Wait { wake_at_ms: Some(6_000), is_timer: false });
    let id = run.asked();
    assert_eq!(run.engine.expire(&mut run.progress, &id, 5_999), None);
    run.now_ms = 6_000;
    let event = run.engine.expire(&mut run.progress, &id, 6_000).unwrap();
    run.record(vec![event]);
    assert_eq!(run.run_to_end().walked(), "no");
}

#[test]
fn a_question_whose_text_panics_is_asked_all_the_same() {
    let gate = Gate::new("a", Question::made(|_| panic!("no words")));
    let graph = StateGraph::new("g")
        .add_node_with("a", gated(gate), step)
        .set_entry_point("a")
        .set_finish_point("a")
        .compile()
        .unwrap();
    let run = Driver::start(&graph, json!({}));
    let open = run.progress.question(&run.asked()).unwrap();
    assert!(open.question.contains("no words"), "{}", open.question);
}

#[test]
fn a_rejection_inside_a_branch_may_lead_to_the_join() {
    let gate = Gate::new("b", Question::new("?")).reject_to("end");
    let graph = plain("g", &[("a", "c"), ("c", "end"), ("end", "END")])
        .add_node_with("b", gated(gate), step)
        .add_edge("a", "b")
        .add_edge("b", "end")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run();
    run.answer(&run.asked(), json!({ "approve": false }));
    assert_eq!(run.run_to_end().walked(), "a c end");
}
