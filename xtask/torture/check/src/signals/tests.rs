//! Answers as they should be, and each way in which they should not.

use serde_json::json;

use super::*;
use crate::testing::{World, answered, completed, opened, run};
use holdpoint_graph::Outcome;

fn signal(world: &mut World, id: &str, to: &str, phase: Phase) {
    world.line("signaller", Line::now(Op::Signal, phase, id).run("r").node(to, 0));
}

fn gate() -> RunDump {
    run("r").event(5, opened("i1", Some("ok")))
}

fn taken(run: RunDump, id: &str, request: &str) -> RunDump {
    run.event(5, answered(id, request, Outcome::Answered))
}

#[test]
fn an_answer_that_was_applied_once_is_good() {
    for to in ["i1", "ok"] {
        let mut world = World::new();
        signal(&mut world, "q1", to, Phase::Ok);
        // Another came second and was refused, a third is unknown and had no effect.
        signal(&mut world, "q2", to, Phase::Fail);
        signal(&mut world, "q3", to, Phase::Unknown);
        world.has(taken(gate(), "i1", "q1"));
        let found = check(&world.facts());
        let expected = Signals { acknowledged: 1, ..Signals::default() };
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}

#[test]
fn an_acknowledged_answer_must_be_in_the_journal() {
    for status in ["completed", "parked", "queued"] {
        let mut world = World::new();
        signal(&mut world, "q1", "ok", Phase::Ok);
        world.has(gate().status(status));
        assert_eq!(check(&world.facts()).not_applied.count, 1, "{status}");
    }
}

#[test]
fn two_answers_to_one_question_cannot_both_be_acknowledged() {
    let mut world = World::new();
    signal(&mut world, "q1", "ok", Phase::Ok);
    signal(&mut world, "q2", "ok", Phase::Ok);
    world.has(taken(gate(), "i1", "q1"));
    assert_eq!(check(&world.facts()).not_applied.examples, ["q2 to ok of r"]);
}

/// An answer by the gate's name that crossed the decision is kept for an opening that may never
/// come; one that was sent when the decision was known to all is to be refused.
#[test]
fn an_answer_by_name_may_cross_the_decision() {
    for (sent, unused) in [(5, 0), (60, 1)] {
        let mut world = World::new();
        world.at(sent);
        signal(&mut world, "q2", "ok", Phase::Invoke);
        world.at(70);
        signal(&mut world, "q2", "ok", Phase::Ok);
        let decided = answered("i1", "q1", Outcome::Answered);
        let gate = run("r").event_at(1, 5, opened("i1", Some("ok"))).event_at(10, 5, decided);
        world.has(gate.event_at(50, 5, completed()));
        assert_eq!(check(&world.facts()).not_applied.count, unused, "sent at {sent}");
    }
}

#[test]
fn the_end_of_a_run_overtakes_an_answer() {
    let mut world = World::new();
    signal(&mut world, "q1", "ok", Phase::Ok);
    world.has(gate().status("cancelled"));
    assert_eq!(check(&world.facts()).overtaken, 1);
    let mut world = World::new();
    signal(&mut world, "q1", "never", Phase::Ok);
    world.has(gate());
    assert_eq!(check(&world.facts()).overtaken, 1);
}

#[test]
fn an_answer_to_a_run_that_is_gone_is_not_applied() {
    let mut world = World::new();
    signal(&mut world, "q1", "ok", Phase::Ok);
    assert_eq!(check(&world.facts()).not_applied.count, 1);
}

#[test]
fn one_answer_may_not_answer_two_questions() {
    let mut world = World::new();
    signal(&mut world, "q1", "ok", Phase::Ok);
    let run = taken(gate(), "i1", "q1").event(5, opened("i2", Some("ok")));
    world.has(taken(run, "i2", "q1"));
    assert_eq!(check(&world.facts()).applied_twice.count, 1);
}

#[test]
fn one_question_may_not_be_answered_twice() {
    let mut world = World::new();
    world.has(taken(taken(gate(), "i1", "q1"), "i1", "q2"));
    assert_eq!(check(&world.facts()).applied_twice.examples, ["r: i1 by q2"]);
}

#[test]
fn an_answer_for_another_question_is_foreign() {
    let mut world = World::new();
    signal(&mut world, "q1", "older", Phase::Ok);
    world.has(taken(gate(), "i1", "q1"));
    assert_eq!(check(&world.facts()).foreign.count, 1);
    let mut world = World::new();
    world.has(taken(run("r"), "i1", "q1"));
    assert_eq!(check(&world.facts()).foreign.examples, ["r: i1 was never open"]);
}

#[test]
fn a_foreign_answer_may_not_be_taken() {
    for (phase, foreign) in [(Phase::Ok, 1), (Phase::Fail, 0), (Phase::Unknown, 0)] {
        let mut world = World::new();
        let line = Line::now(Op::Signal, phase, "q1").run("r").node("i9", 0);
        world.line("signaller", line.detail(json!({"foreign": true}))).has(gate());
        assert_eq!(check(&world.facts()).foreign.count, foreign, "{phase:?}");
    }
}

#[test]
fn a_refused_answer_may_not_be_applied_and_an_unknown_one_may() {
    for (phase, refused, recovered) in [(Phase::Fail, 1, 0), (Phase::Unknown, 0, 1)] {
        let mut world = World::new();
        signal(&mut world, "q1", "ok", phase);
        world.has(taken(gate(), "i1", "q1"));
        let found = check(&world.facts());
        assert_eq!((found.refused_but_applied.count, found.recovered), (refused, recovered));
    }
}

#[test]
fn a_store_that_may_lose_may_lose_an_answer_in_a_fault_that_follows() {
    for (may_lose, at, lost) in [(true, 9, 1), (true, 1, 0), (false, 9, 0)] {
        let mut world = World::new();
        world.may_lose = may_lose;
        signal(world.at(5), "q1", "ok", Phase::Ok);
        world.at(at).fault("store", crate::fault::POWER, Phase::Invoke).has(gate());
        let found = check(&world.facts());
        assert_eq!((found.lost, found.not_applied.count), (lost, 1 - lost), "{may_lose} {at}");
    }
}
