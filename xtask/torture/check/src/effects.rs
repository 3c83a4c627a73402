//! Effects: what the effect service saw of each place in a run.
//!
//! Shows: an unsafe effect that was called again without a decision to do so, and an idempotent
//! one that came under another key. An effect that is pure may come as often as it likes.
//! The witness stands outside: the service counts calls, whatever workers believe.
//! Cannot show: a call that never reached the service.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_graph::{Event, Outcome};
use serde::Serialize;
use serde_json::Value;

use crate::{Op, Phase, count::Count, facts::Facts};

/// What the effect service saw.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Effects {
    /// Calls of all classes.
    pub calls: u64,
    /// Unsafe effects that were called more often than decisions allow.
    pub unsafe_twice: Count,
    /// Unsafe effects that were called again because a store that may lose forgot the first call.
    pub forgotten: u64,
    /// Idempotent effects that came under several keys, or without one.
    pub other_key: Count,
    /// Keys that came for several effects.
    pub shared_key: Count,
    /// Calls whose class the service could not tell.
    pub unclassed: Count,
}

#[derive(Default)]
struct Calls<'a> {
    run: &'a str,
    class: &'a str,
    count: usize,
    first: u64,
    keys: BTreeSet<Option<&'a str>>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Effects {
    let mut effects: BTreeMap<&str, Calls<'_>> = BTreeMap::new();
    let mut found = Effects::default();
    let calls = |op: Op, phase: Phase| op == Op::Effect && phase == Phase::Invoke;
    for line in facts.history.lines.iter().filter(|line| calls(line.op, line.phase)) {
        let text = |key| line.detail.as_ref().and_then(|detail| detail.get(key)?.as_str());
        let calls = effects.entry(&line.id).or_default();
        found.calls += 1;
        calls.run = line.run.as_deref().unwrap_or_default();
        calls.class = text("class").unwrap_or_default();
        calls.first = if calls.count == 0 { line.mono } else { calls.first };
        calls.count += 1;
        calls.keys.insert(text("key"));
    }
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, calls) in &effects {
        match calls.class {
            "unsafe" if calls.count <= 1 + retries(facts, calls.run) => {}
            "unsafe" if facts.may_be_lost(calls.first) => found.forgotten += 1,
            "unsafe" => {
                found.unsafe_twice.add(format!("{id} was called {} times", calls.count));
            }
            "pure" => {}
            "idempotent" => {
                if calls.keys.len() > 1 || calls.keys.contains(&None) {
                    found.other_key.add(format!("{id} came under {:?}", calls.keys));
                }
                for key in calls.keys.iter().flatten() {
                    if let Some(other) = keys.insert(key, id) {
                        found.shared_key.add(format!("{key} came for {other} and {id}"));
                    }
                }
            }
            other => found.unclassed.add(format!("{id} is {other:?}")),
        }
    }
    found
}

/// How often somebody decided to run an uncertain effect of the run again.
fn retries(facts: &Facts<'_>, run: &str) -> usize {
    let events = facts.runs.get(run).map(|run| run.events.as_slice()).unwrap_or_default();
    let is_retry =
        |event: &Event| matches!(event, Event::InterruptAnswered { outcome: Outcome::Retry, .. });
    events.iter().filter(|event| is_retry(&event.event)).count()
}

/// The details of an effect's line.
#[must_use]
pub fn effect_detail(class: &str, key: Option<&str>) -> Value {
    serde_json::json!({ "class": class, "key": key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Line,
        testing::{World, answered, run},
    };

    fn call(world: &mut World, id: &str, class: &str, key: Option<&str>) {
        let line = Line::now(Op::Effect, Phase::Invoke, id).run("r");
        world.line("service", line.detail(effect_detail(class, key)));
    }

    #[test]
    fn each_class_may_do_what_it_may() {
        let mut world = World::new();
        call(&mut world, "r/pay", "unsafe", None);
        call(&mut world, "r/mail", "idempotent", Some("k1"));
        call(&mut world, "r/mail", "idempotent", Some("k1"));
        call(&mut world, "r/look", "pure", None);
        call(&mut world, "r/look", "pure", Some("x"));
        let found = check(&world.facts());
        let expected = Effects { calls: 5, ..Effects::default() };
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn an_unsafe_effect_is_called_once_for_each_decision() {
        let mut world = World::new();
        call(&mut world, "r/pay", "unsafe", None);
        call(&mut world, "r/pay", "unsafe", None);
        assert_eq!(check(&world.facts()).unsafe_twice.count, 1);
        world.has(run("r").event(5, answered("i", "q", Outcome::Retry)));
        assert_eq!(check(&world.facts()).unsafe_twice.count, 0);
        call(&mut world, "r/pay", "unsafe", None);
        assert_eq!(check(&world.facts()).unsafe_twice.count, 1);
    }

    #[test]
    fn a_store_that_may_lose_may_forget_a_call() {
        let mut world = World::new();
        call(world.at(1), "r/pay", "unsafe", None);
        world.at(2).fault("store", crate::fault::POWER, Phase::Invoke);
        call(world.at(3), "r/pay", "unsafe", None);
        assert_eq!(check(&world.facts()).unsafe_twice.count, 1);
        world.may_lose = true;
        let found = check(&world.facts());
        assert_eq!((found.unsafe_twice.count, found.forgotten), (0, 1));
    }

    #[test]
    fn an_idempotent_effect_keeps_its_key() {
        let mut world = World::new();
        call(&mut world, "r/mail", "idempotent", Some("k1"));
        call(&mut world, "r/mail", "idempotent", Some("k2"));
        call(&mut world, "r/post", "idempotent", None);
        assert_eq!(check(&world.facts()).other_key.count, 2);
    }

    #[test]
    fn two_effects_have_two_keys() {
        let mut world = World::new();
        call(&mut world, "r/mail", "idempotent", Some("k1"));
        call(&mut world, "s/mail", "idempotent", Some("k1"));
        assert_eq!(check(&world.facts()).shared_key.count, 1);
    }

    #[test]
    fn a_call_without_a_class_is_not_passed_over() {
        let mut world = World::new();
        call(&mut world, "r/pay", "", None);
        assert_eq!(check(&world.facts()).unclassed.count, 1);
    }
}
