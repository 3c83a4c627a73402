//! What the store holds, against itself: conservation, and the chain of each journal.
//!
//! *Conservation* takes the store's own check (every run in exactly the indexes of its state, no
//! part without a run, counters right) and counts the runs once more by listing them.
//! *Chain*: events are numbered 0..n without a gap, each hash names its predecessor, the head names
//! the last, epochs never fall, and the journal's end fits the run's state.
//! Cannot show: a journal that was rolled back as a whole, head and all, as an old backup would.

use holdpoint_graph::Event;
use holdpoint_storage::Level;
use serde::Serialize;

use crate::{RunDump, count::Count, facts::Facts};

/// What is wrong with what the store holds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stored {
    /// Runs that were read.
    pub runs: u64,
    /// Events that were read and verified.
    pub events: u64,
    /// What the store's own check, or a second count, found wrong.
    pub conservation: Count,
    /// Journals that are not what was written.
    pub chain: Count,
}

pub(crate) fn check(facts: &Facts<'_>) -> Stored {
    let mut found = Stored { runs: facts.dump.runs.len() as u64, ..Stored::default() };
    for finding in facts.dump.findings.iter().filter(|finding| finding.level == Level::Bad) {
        found.conservation.add(format!("{}: {}", finding.check, finding.text));
    }
    if facts.dump.findings.is_empty() {
        found.conservation.add("the store's check said nothing at all");
    }
    if facts.dump.counted != found.runs {
        let (counted, listed) = (facts.dump.counted, found.runs);
        found.conservation.add(format!("the store counts {counted} runs and lists {listed}"));
    }
    for run in &facts.dump.runs {
        found.events += run.events.len() as u64;
        chain(run, &mut found.chain);
    }
    found
}

fn chain(run: &RunDump, faults: &mut Count) {
    let id = &run.run;
    if let Some(damage) = &run.damage {
        faults.add(format!("{id}: {damage}"));
        return;
    }
    if run.events.len() as u64 != run.seq {
        faults.add(format!("{id} has {} events, its head says {}", run.events.len(), run.seq));
    }
    let mut newest = 0;
    for (at, event) in run.events.iter().enumerate() {
        if event.seq != at as u64 {
            faults.add(format!("{id}: event {} stands at {at}", event.seq));
        }
        if event.epoch != 0 && event.epoch < newest {
            faults.add(format!("{id}: the epoch of event {at} falls to {}", event.epoch));
        }
        newest = newest.max(event.epoch);
    }
    if newest > run.epoch {
        faults.add(format!("{id}: epoch {newest} in the journal, {} in the head", run.epoch));
    }
    if let Some(end) = end(run)
        && end != run.status
    {
        faults.add(format!("{id} is {}, its journal ends {end}", run.status));
    }
}

/// The final state that the journal ends with.
fn end(run: &RunDump) -> Option<&'static str> {
    let end = run.events.iter().rev().find_map(|event| match event.event {
        Event::RunCompleted => Some("completed"),
        Event::RunFailed { .. } => Some("failed"),
        Event::RunCancelled { .. } => Some("cancelled"),
        Event::Redriven { .. } => Some(""),
        _ => None,
    });
    // Without an end in the journal the run must not have ended.
    match end {
        Some("") | None => match run.status.as_str() {
            "completed" | "failed" | "cancelled" => Some("open"),
            _ => None,
        },
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_storage::Finding;

    use super::*;
    use crate::testing::{World, claimed, completed, done, run};

    fn world(run: RunDump) -> World {
        let mut world = World::new();
        world.has(run);
        world.dump.findings.push(Finding::new(Level::Ok, "places", "nothing found", ""));
        world
    }

    fn good() -> RunDump {
        let journal = run("r").event(5, claimed("w", 5, 0)).event(0, done("a", 1));
        journal.event(6, claimed("w", 6, 1)).event(6, completed())
    }

    fn faults(run: RunDump) -> Vec<String> {
        let found = check(&world(run).facts());
        assert_eq!(found.conservation.count, 0);
        found.chain.examples
    }

    #[test]
    fn a_sound_store_has_no_faults() {
        assert!(faults(good()).is_empty());
        assert!(faults(run("r").status("running").event(5, claimed("w", 5, 0))).is_empty());
    }

    #[test]
    fn each_fault_of_a_chain_is_named() {
        let mut damaged = good();
        damaged.damage = Some("event 1: its hash does not verify".into());
        assert_eq!(faults(damaged), ["r: event 1: its hash does not verify"]);
        let mut short = good();
        short.events.remove(1);
        assert_eq!(faults(short).len(), 3);
        let mut fell = good();
        fell.events[1].epoch = 7;
        fell.epoch = 7;
        assert_eq!(faults(fell).len(), 2);
        let mut head = good();
        head.epoch = 5;
        assert_eq!(faults(head), ["r: epoch 6 in the journal, 5 in the head"]);
    }

    #[test]
    fn state_and_journal_must_agree() {
        assert_eq!(faults(good().status("queued")), ["r is queued, its journal ends completed"]);
        let open = run("r").event(5, claimed("w", 5, 0));
        assert_eq!(faults(open), ["r is completed, its journal ends open"]);
    }

    #[test]
    fn what_the_store_says_of_itself_counts() {
        let mut world = world(good());
        world.dump.findings.push(Finding::new(Level::Warn, "synchronous", "NORMAL", ""));
        assert_eq!(check(&world.facts()).conservation.count, 0);
        world.dump.findings.push(Finding::new(Level::Bad, "places", "run r stands nowhere", ""));
        assert_eq!(check(&world.facts()).conservation.count, 1);
        world.dump.counted = 2;
        assert_eq!(check(&world.facts()).conservation.count, 2);
        world.dump.findings.clear();
        assert_eq!(check(&world.facts()).conservation.count, 2);
    }
}
