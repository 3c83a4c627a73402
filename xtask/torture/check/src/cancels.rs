//! Cancels: after an acknowledged cancel a run makes no further step.
//!
//! An owner stamps an event before it sends the commit, so an event with a time after the
//! acknowledgement was certainly committed after it. What was stamped before and committed after
//! stays unseen here; the conformance suite shows that such a commit is refused.
//! A node may still begin in the moment between its predecessor's commit and the owner's next word
//! with the store; a beginning later than a lease after the acknowledgement may not be.

use std::collections::{BTreeSet, HashMap};

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    EventDump, Op, Phase,
    count::Count,
    facts::{APART_MS, Facts, MS},
};

/// What became of cancels.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cancels {
    /// Runs whose cancel was acknowledged.
    pub acknowledged: u64,
    /// Steps that were committed after the acknowledgement.
    pub stepped: Count,
    /// Nodes that began later than a lease after the acknowledgement.
    pub began: Count,
    /// Cancelled, acknowledged, and still not ended.
    pub unended: Count,
}

pub(crate) fn check(facts: &Facts<'_>, lease_ms: u64) -> Cancels {
    let mut acknowledged: HashMap<&str, (u64, i64)> = HashMap::new();
    for line in facts.history.lines.iter() {
        if let (Op::Cancel, Phase::Ok, Some(run)) = (line.op, line.phase, &line.run) {
            acknowledged.entry(run).or_insert((line.mono, line.wall));
        }
    }
    let mut found = Cancels { acknowledged: acknowledged.len() as u64, ..Cancels::default() };
    // A store that may lose may have forgotten the cancel.
    acknowledged.retain(|_, (at, _)| !facts.may_be_lost(*at));
    for (id, (_, wall)) in &acknowledged {
        // A run that is gone is counted as lost.
        let Some(run) = facts.runs.get(id) else { continue };
        if run.events.iter().any(|event| matches!(event.event, Event::Redriven { .. })) {
            continue;
        }
        for event in
            before_the_end(&run.events).iter().filter(|event| event.at_ms > wall + APART_MS)
        {
            if matches!(event.event, Event::NodeCompleted { .. } | Event::RunCompleted) {
                let (name, late) = (event.event.type_name(), event.at_ms - wall);
                found.stepped.add(format!("{id}: {name} {late} ms after its cancel"));
            }
        }
        if !matches!(run.status.as_str(), "completed" | "failed" | "cancelled") {
            found.unended.add(format!("{id} is {}", run.status));
        }
    }
    for execution in &facts.executions {
        let Some((at, _)) = acknowledged.get(execution.run) else { continue };
        if execution.begin > at + lease_ms * MS {
            found.began.add(execution.place());
        }
    }
    found
}

/// The events without those that an owner wrote together with the end as cancelled: what was at
/// work when the cancel came may end, one node of each branch, and the journal says so.
fn before_the_end(events: &[EventDump]) -> &[EventDump] {
    let Some((end, before)) = events.split_last() else { return events };
    if !matches!(end.event, Event::RunCancelled { .. }) {
        return events;
    }
    let mut branches = BTreeSet::new();
    let ends_with_it = |event: &&EventDump| {
        end.epoch == event.epoch
            && match &event.event {
                Event::NodeCompleted { task, .. } => branches.insert(task.branch.clone()),
                Event::BranchJoined { .. } => true,
                _ => false,
            }
    };
    let tail = before.iter().rev().take_while(ends_with_it).count();
    before.get(..before.len() - tail).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Line,
        testing::{World, completed, done, run},
    };

    fn cancelled() -> World {
        let mut world = World::new();
        world.at(100).line("canceller", Line::now(Op::Cancel, Phase::Ok, "q").run("r"));
        world
    }

    #[test]
    fn a_cancelled_run_ends_where_it_was() {
        let mut world = cancelled();
        let end = Event::RunCancelled { by: "me".into() };
        let journal = run("r").status("cancelled").event_at(99, 5, done("a", 1));
        world.has(journal.event_at(130, 5, end));
        world.at(101).node("w", ("r", "b", 1), 5, Phase::Invoke);
        let found = check(&world.facts(), 1_000);
        let expected = Cancels { acknowledged: 1, ..Cancels::default() };
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn what_was_at_work_may_end_with_the_run() {
        let end = || Event::RunCancelled { by: "me".into() };
        let mut world = cancelled();
        let journal = run("r").status("cancelled").event_at(120, 5, done("a", 1));
        world.has(journal.event_at(130, 5, end()));
        assert_eq!(check(&world.facts(), 1_000).stepped.count, 0);
        let mut world = cancelled();
        let journal = run("r").status("cancelled").event_at(120, 5, done("a", 1));
        world.has(journal.event_at(130, 5, done("b", 1)).event_at(140, 5, end()));
        assert_eq!(check(&world.facts(), 1_000).stepped.count, 1, "no second node of a branch");
    }

    #[test]
    fn no_step_is_committed_after_the_acknowledgement() {
        for event in [done("a", 1), completed()] {
            let mut world = cancelled();
            world.has(run("r").event_at(200, 5, event));
            assert_eq!(check(&world.facts(), 1_000).stepped.count, 1);
        }
    }

    #[test]
    fn no_node_begins_a_lease_later() {
        let mut world = cancelled();
        world.has(run("r").status("cancelled"));
        world.at(1_101).node("w", ("r", "b", 1), 5, Phase::Invoke);
        assert_eq!(check(&world.facts(), 1_000).began.count, 1);
    }

    #[test]
    fn a_store_that_may_lose_may_forget_a_cancel() {
        let mut world = cancelled();
        world.has(run("r").event_at(200, 5, completed()));
        world.at(150).fault("store", crate::fault::STORE_KILL, Phase::Invoke);
        assert_eq!(check(&world.facts(), 1_000).stepped.count, 1);
        world.may_lose = true;
        assert_eq!(check(&world.facts(), 1_000).stepped.count, 0);
    }

    #[test]
    fn a_cancelled_run_ends() {
        let mut world = cancelled();
        world.has(run("r").status("running"));
        assert_eq!(check(&world.facts(), 1_000).unended.examples, ["r is running"]);
    }
}
