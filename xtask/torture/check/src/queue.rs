//! Total queue: what producers put in against what came out.
//!
//! Shows: an acknowledged run that the store does not have, a run that nobody asked for, a run
//! that ended twice, and what became of enqueues whose outcome was unknown.
//! Cannot show: a payload that came out changed (the chain does, for what is in the journal), nor
//! a run that was lost and pruned; nothing is old enough to be pruned in a torture run.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    Op, Phase, RunDump,
    count::Count,
    facts::{Facts, MS},
};

/// What became of the enqueues.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TotalQueue {
    /// Runs whose enqueue was acknowledged.
    pub acknowledged: u64,
    /// Acknowledged, and not in the store.
    pub lost: Count,
    /// In the store, and never sent.
    pub unexpected: Count,
    /// In the store more than once, or ended more than once.
    pub duplicated: Count,
    /// Outcome unknown, and in the store.
    pub recovered: u64,
    /// Outcome unknown, and not in the store.
    pub unknown: u64,
    /// Refused for sure, and in the store all the same.
    pub refused_but_stored: Count,
    /// The longest time from the acknowledgement of a lost run to the fault of the store that took
    /// it, in ms; none when a run is lost that no such fault explains.
    pub window_ms: Option<u64>,
}

#[derive(Default)]
struct Sent {
    acknowledged: Option<u64>,
    is_open: bool,
    is_refused: bool,
}

pub(crate) fn check(facts: &Facts<'_>) -> TotalQueue {
    let mut sent: BTreeMap<&str, Sent> = BTreeMap::new();
    for line in facts.history.lines.iter().filter(|line| line.op == Op::Enqueue) {
        let entry = sent.entry(&line.id).or_default();
        match line.phase {
            Phase::Invoke => {}
            Phase::Ok => entry.acknowledged = entry.acknowledged.or(Some(line.mono)),
            Phase::Unknown => entry.is_open = true,
            Phase::Fail => entry.is_refused = true,
        }
    }
    let mut found = TotalQueue { window_ms: Some(0), ..TotalQueue::default() };
    for (run, sent) in &sent {
        let is_there = facts.runs.contains_key(run);
        match (sent.acknowledged, is_there) {
            (Some(_), true) => found.acknowledged += 1,
            (Some(at), false) => {
                found.acknowledged += 1;
                found.lost.add(*run);
                found.window_ms = longer(found.window_ms, taken_after_ms(facts, at));
            }
            // An invocation without an outcome is unknown too: its producer was killed.
            (None, true) if sent.is_refused && !sent.is_open => found.refused_but_stored.add(*run),
            (None, true) => found.recovered += 1,
            (None, false) if sent.is_refused && !sent.is_open => {}
            (None, false) => found.unknown += 1,
        }
    }
    let mut seen = BTreeSet::new();
    for run in &facts.dump.runs {
        if !sent.contains_key(run.run.as_str()) {
            found.unexpected.add(&run.run);
        }
        if !seen.insert(&run.run) {
            found.duplicated.add(format!("{} is listed twice", run.run));
        }
        let (ends, redrives) = ends(run);
        if ends > 1 + redrives {
            found.duplicated.add(format!("{} ended {ends} times", run.run));
        }
    }
    found
}

fn longer(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

/// How long after `at` the next fault came that may take what a store holds.
fn taken_after_ms(facts: &Facts<'_>, at: u64) -> Option<u64> {
    Some((facts.next_loss(at)?.begin - at) / MS)
}

fn ends(run: &RunDump) -> (usize, usize) {
    let count = |is_it: fn(&Event) -> bool| run.events.iter().filter(|e| is_it(&e.event)).count();
    let ends = count(|event| {
        matches!(event, Event::RunCompleted | Event::RunFailed { .. } | Event::RunCancelled { .. })
    });
    (ends, count(|event| matches!(event, Event::Redriven { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fault,
        testing::{World, completed, run},
    };

    #[test]
    fn a_good_history_loses_nothing() {
        let mut world = World::new();
        for id in ["r1", "r2"] {
            world.at(1).enqueue(id, Phase::Invoke).at(2).enqueue(id, Phase::Ok);
            world.has(run(id).event(1, completed()));
        }
        // Two unknown outcomes: one came out, one did not; and one that was refused.
        world.enqueue("r3", Phase::Invoke).enqueue("r3", Phase::Unknown).has(run("r3"));
        world.enqueue("r4", Phase::Invoke).enqueue("r4", Phase::Unknown);
        world.enqueue("r5", Phase::Invoke).enqueue("r5", Phase::Fail);
        let found = check(&world.facts());
        assert_eq!((found.acknowledged, found.recovered, found.unknown), (2, 1, 1));
        for count in [&found.lost, &found.unexpected, &found.duplicated, &found.refused_but_stored]
        {
            assert_eq!(count.count, 0, "{count:?}");
        }
    }

    #[test]
    fn an_acknowledged_run_that_is_gone_is_lost() {
        let mut world = World::new();
        world.at(10).enqueue("r1", Phase::Ok);
        let found = check(&world.facts());
        assert_eq!((found.lost.count, found.window_ms), (1, None));
        world.at(35).fault("store", fault::POWER, Phase::Invoke);
        assert_eq!(check(&world.facts()).window_ms, Some(25));
    }

    #[test]
    fn an_acknowledgement_after_an_unknown_outcome_counts() {
        let mut world = World::new();
        world.enqueue("r1", Phase::Unknown).enqueue("r1", Phase::Ok);
        assert_eq!(check(&world.facts()).lost.count, 1);
    }

    #[test]
    fn a_producer_that_died_leaves_an_unknown_outcome() {
        let mut world = World::new();
        world.enqueue("r1", Phase::Invoke).enqueue("r2", Phase::Invoke).has(run("r2"));
        let found = check(&world.facts());
        assert_eq!((found.unknown, found.recovered), (1, 1));
    }

    #[test]
    fn what_nobody_sent_is_unexpected() {
        let mut world = World::new();
        world.has(run("ghost"));
        assert_eq!(check(&world.facts()).unexpected.examples, ["ghost"]);
    }

    #[test]
    fn a_run_that_was_refused_may_not_be_stored() {
        let mut world = World::new();
        world.enqueue("r1", Phase::Fail).has(run("r1"));
        assert_eq!(check(&world.facts()).refused_but_stored.count, 1);
    }

    #[test]
    fn two_ends_are_a_duplicate_unless_it_was_redriven() {
        let mut world = World::new();
        world.enqueue("r1", Phase::Ok);
        world.has(run("r1").event(1, completed()).event(1, completed()));
        assert_eq!(check(&world.facts()).duplicated.count, 1);
        let redriven = Event::Redriven { by: "op".into(), max_steps: None };
        let mut world = World::new();
        world.enqueue("r1", Phase::Ok);
        world.has(run("r1").event(1, completed()).event(0, redriven).event(1, completed()));
        assert_eq!(check(&world.facts()).duplicated.count, 0);
    }

    #[test]
    fn a_run_that_is_listed_twice_is_a_duplicate() {
        let mut world = World::new();
        world.enqueue("r1", Phase::Ok).has(run("r1")).has(run("r1"));
        assert_eq!(check(&world.facts()).duplicated.count, 1);
    }
}
