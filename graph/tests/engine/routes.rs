//! Routes and gotos: what they may answer, what happens when they do not, and the redrive.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use holdpoint_graph::{
    Answered, END, Event, Next, NodeContext, NodeError, NodeOptions, ReasonCode, Routing, State,
    StateGraph, Update,
};
use serde_json::json;

use crate::driver::{Driver, lists, plain, step};

/// a → (b or c) by a fan route, b → d, c → d.
fn fan<A: Into<Answered> + 'static>(
    route: impl Fn(&State) -> A + Send + Sync + 'static,
) -> StateGraph {
    StateGraph::new("fan")
        .with_schema(lists())
        .add_node("a", step)
        .add_node("b", step)
        .add_node("c", step)
        .add_node("d", step)
        .set_entry_point("a")
        .add_fan_edge("a", route, ["b", "c", END])
        .add_edge("b", "d")
        .add_edge("c", "d")
        .set_finish_point("d")
}

fn walked<A: Into<Answered> + 'static>(
    route: impl Fn(&State) -> A + Send + Sync + 'static,
) -> String {
    let graph = fan(route).compile().unwrap();
    Driver::start(&graph, json!({})).run_to_end().walked()
}

#[test]
fn a_route_answers_one_several_or_the_end() {
    assert_eq!(walked(|_| "b"), "a b d");
    assert_eq!(walked(|_| vec!["c", "b"]), "a c b d");
    assert_eq!(walked(|_| vec!["c"]), "a c d");
    assert_eq!(walked(|_| END), "a");
    assert_eq!(walked(|_| ""), "a", "the empty text is the end");
    assert_eq!(walked(|_| None::<String>), "a", "no answer is the end");
    assert_eq!(walked(|_| vec!["b", "c", "b"]), "a b c d", "a double runs once");
    assert_eq!(walked(|_| Vec::<String>::new()), "a d", "nothing goes straight to the join");
}

#[test]
fn a_route_sees_the_state_after_its_node() {
    let seen = |state: &State| match state.get("path") {
        Some(_) => "b",
        None => "c",
    };
    assert_eq!(walked(seen), "a b d");
}

fn failure(route: impl Fn(&State) -> Answered + Send + Sync + 'static) -> String {
    let graph = fan(route).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let reason = run.run_to_failure();
    assert_eq!((reason.code, reason.node.as_deref()), (ReasonCode::NodeError, Some("a")));
    assert_eq!(run.walked(), "a", "the node's update is kept");
    reason.message
}

#[test]
fn an_answer_that_is_not_declared_fails_the_run_and_names_the_targets() {
    for message in [
        failure(|_| "ghost".into()),
        failure(|_| vec!["b", "ghost"].into()),
        failure(|_| vec![holdpoint_graph::Send::new("ghost", json!({}))].into()),
    ] {
        for part in ["\"a\"", "\"ghost\"", "\"b\"", "\"c\""] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert!(failure(|_| "a".into()).contains("\"a\""), "the node itself is no target");
    let panics = failure(|_| panic!("lost"));
    assert!(panics.contains("\"a\"") && panics.contains("the route panicked: lost"), "{panics}");
}

#[test]
fn null_is_an_error_where_the_end_is_no_target() {
    let graph = StateGraph::new("g")
        .add_node("a", step)
        .add_node("b", step)
        .set_entry_point("a")
        .add_conditional_edge("a", |_| "", ["b"])
        .set_finish_point("b")
        .compile()
        .unwrap();
    let reason = Driver::start(&graph, json!({})).run_to_failure();
    assert!(reason.message.contains("__end__"), "{}", reason.message);
}

#[test]
fn a_redrive_asks_the_route_again_and_not_the_node() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let route = move |_: &State| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => panic!("once"),
        1 => "ghost",
        _ => "b",
    };
    let graph = fan(route).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_to_failure();
    run.redrive(None);
    assert!(run.run_to_failure().message.contains("ghost"));
    run.redrive(None);
    assert_eq!(run.run_to_end().walked(), "a b d");
    assert_eq!((run.ran("a"), run.progress.steps()), (1, 3));
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_route_is_part_of_the_event_and_never_asked_twice() {
    let flips = AtomicU32::new(0);
    let route = move |_: &State| match flips.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => "b",
        _ => "c",
    };
    let graph = fan(route).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    run.run_node("a");
    // Folding the journal again stands at b, not at c.
    let progress = holdpoint_graph::Progress::fold(&run.events).unwrap();
    let Next::Run(tasks) = run.engine.next(&progress, 0) else { panic!("b is ready") };
    assert_eq!(tasks.first().unwrap().node, "b");
}

/// a may goto b or END, and has an edge to c; it says these targets.
fn goto(targets: &'static [&'static str]) -> Driver {
    let node = move |_: NodeContext, _: State| async move {
        let update = Update::new().set("path", "a");
        Ok::<_, NodeError>(targets.iter().fold(update, |update, target| update.goto(*target)))
    };
    let graph = StateGraph::new("g")
        .with_schema(lists())
        .add_node_with("a", NodeOptions::new().goto_targets(["b", END]), node)
        .add_node("b", step)
        .add_node("c", step)
        .set_entry_point("a")
        .add_edge("a", "c")
        .set_finish_point("b")
        .set_finish_point("c")
        .compile()
        .unwrap();
    Driver::start(&graph, json!({}))
}

#[test]
fn a_goto_goes_where_it_is_declared() {
    assert_eq!(goto(&["b"]).run_to_end().walked(), "a b");
    assert_eq!(goto(&[END]).run_to_end().walked(), "a");
    assert_eq!(goto(&[]).run_to_end().walked(), "a c");
}

/// Neither of two gotos is chosen silently, and no fork comes of them; one said twice is one.
#[test]
fn two_gotos_are_the_nodes_error() {
    for targets in [&["b", END], &[END, "b"], &["b", "ghost"]] {
        let mut run = goto(targets);
        let reason = run.run_to_failure();
        assert!(reason.message.contains("goto"), "{}", reason.message);
        assert_eq!(run.walked(), "");
    }
    assert_eq!(goto(&["b", "b"]).run_to_end().walked(), "a b");
}

#[test]
fn an_undeclared_goto_is_the_nodes_error_and_writes_nothing() {
    let mut run = goto(&["c"]);
    let reason = run.run_to_failure();
    assert!(reason.message.contains("\"c\""), "{}", reason.message);
    assert_eq!(run.walked(), "");
}

#[test]
fn a_node_with_gotos_alone_must_goto() {
    let graph = StateGraph::new("g")
        .add_node_with("a", NodeOptions::new().goto_targets([END]), step)
        .set_entry_point("a")
        .compile()
        .unwrap();
    let mut run = Driver::start(&graph, json!({}));
    assert!(run.run_to_failure().message.contains("no goto"));
}

#[test]
fn a_goto_out_of_a_branch_moves_the_join() {
    let node = |_: NodeContext, _: State| async {
        Ok::<_, NodeError>(Update::new().set("path", "x").goto("late"))
    };
    let graph = plain("g", &[("a", "y"), ("y", "j"), ("j", "late"), ("late", "END")])
        .add_node_with("x", NodeOptions::new().goto_targets(["late"]), node)
        .add_edge("a", "x")
        .add_edge("x", "j");
    // j belongs to both branches now, and is no join.
    assert!(graph.compile().unwrap_err().to_string().contains("ambiguous_join"));
    let graph = plain("g", &[("a", "y"), ("y", "j"), ("j", "late"), ("late", "END")])
        .add_node_with("x", NodeOptions::new().goto_targets(["late"]), node)
        .add_node("x2", step)
        .add_edge("a", "x")
        .add_edge("x", "x2")
        .add_edge("x2", "late")
        .compile()
        .unwrap();
    assert_eq!(Driver::start(&graph, json!({})).run_to_end().walked(), "a y j x late");
}

#[test]
fn what_is_not_live_cannot_be_completed() {
    let graph = plain("g", &[("a", "b"), ("b", "END")]).compile().unwrap();
    let mut run = Driver::start(&graph, json!({}));
    let Next::Run(tasks) = run.next() else { panic!("a is ready") };
    run.run_node("a");
    let before = run.progress.clone();
    let again = run.engine.complete(&mut run.progress, &tasks[0], Update::new());
    assert!(again.is_err());
    assert_eq!(run.progress, before, "a refused result changes nothing");
    let event = Event::NodeCompleted {
        task: tasks[0].clone(),
        patches: vec![],
        next: Routing::To("b".to_owned()),
        counted: true,
    };
    assert!(run.progress.apply(&event).is_err(), "nor does it follow in a journal");
}
