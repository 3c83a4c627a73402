//! Recovery: how long a run stood still because its worker was killed.
//!
//! From the kill to the first node that another owner begins, for each run in which the dead worker
//! had a node at work. A dead process is handed back by its supervisor; a dead machine costs a
//! lease: two kinds of samples.
//! A run that lost its worker twice without progress waits on purpose before the next claim, so
//! only the first loss in a row counts.
//! Where the store fell, stalled or was cut off meanwhile, nobody could claim, and after a stall
//! nothing is taken for lost for one lease: these times are kept apart as *held*.
//! Cannot show: runs that were between two nodes, and the wait of those that never went on (they
//! are stuck).

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    RunDump,
    count::Samples,
    facts::{End, Execution, Facts, MS},
    fault,
};

/// How long runs stood still, in ms.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Recovery {
    /// After the death of a process.
    pub process: Samples,
    /// After the death of a machine.
    pub machine: Samples,
    /// After either, when the store was not there all the time.
    pub held: Samples,
    /// Not counted, because the run had to wait after several losses.
    pub delayed: u64,
}

/// `lease_ms` is the lease of the workers.
pub(crate) fn check(facts: &Facts<'_>, lease_ms: u64) -> Recovery {
    let (mut process, mut machine, mut held, mut delayed) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut seen = std::collections::BTreeSet::new();
    for execution in &facts.executions {
        let End::Killed(_) = execution.end else { continue };
        let Some(worker) = facts.workers.get(execution.process) else { continue };
        let is_first = seen.insert((execution.run, execution.pair()));
        let Some(killed) = worker.killed.filter(|_| is_first) else { continue };
        let Some(next) = next(facts, execution, killed) else { continue };
        if is_delayed(facts.runs.get(execution.run).copied(), execution.epoch) {
            delayed += 1;
            continue;
        }
        let ms = (next.begin - killed) / MS;
        if store_was_away(facts, killed, next.begin, lease_ms) {
            held.push(ms);
        } else if worker.with_machine {
            machine.push(ms);
        } else {
            process.push(ms);
        }
    }
    Recovery {
        process: Samples::of(process),
        machine: Samples::of(machine),
        held: Samples::of(held),
        delayed,
    }
}

/// Whether the store was away in this span, or so shortly before it that the reaper still held.
fn store_was_away(facts: &Facts<'_>, from: u64, to: u64, lease_ms: u64) -> bool {
    let kinds = [fault::STORE_KILL, fault::POWER, fault::STALL];
    let hold = lease_ms * MS;
    facts.faults.iter().any(|fault| {
        kinds.contains(&fault.kind) && fault.begin <= to && fault.end.saturating_add(hold) >= from
    })
}

/// The first thing that another owner does.
fn next<'a>(facts: &'a Facts<'_>, dead: &Execution<'_>, killed: u64) -> Option<&'a Execution<'a>> {
    facts.executions_of(dead.run).find(|other| other.pair() != dead.pair() && other.begin >= killed)
}

/// Whether the loss of this epoch was not the first in a row.
fn is_delayed(run: Option<&RunDump>, epoch: i64) -> bool {
    let Some(run) = run else { return false };
    let mut in_a_row = 0;
    for event in &run.events {
        match &event.event {
            Event::WorkerLost { epoch: lost, .. } => {
                in_a_row += 1;
                if i64::try_from(*lost) == Ok(epoch) {
                    return in_a_row > 1;
                }
            }
            other if other.is_progress() => in_a_row = 0,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Phase,
        testing::{World, claimed, lost, run},
    };

    const LEASE: u64 = 1_000;
    const A: (&str, &str, u64) = ("r", "a", 1);

    fn killed(kind: &str) -> World {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(10).fault("w1", kind, Phase::Invoke);
        world.at(60).node("w2", A, 6, Phase::Invoke).at(70).node("w2", A, 6, Phase::Ok);
        let journal = run("r").event(6, lost("w1", 5, (1, 20), "signal 9"));
        world.has(journal.event(6, claimed("w2", 6, 50)));
        world
    }

    #[test]
    fn a_sample_is_the_time_from_the_kill_to_the_next_owners_node() {
        let found = check(&killed(fault::KILL).facts(), LEASE);
        assert_eq!((found.process, found.machine.len()), (Samples::of(vec![50]), 0));
        let found = check(&killed(fault::MACHINE).facts(), LEASE);
        assert_eq!((found.process.len(), found.machine), (0, Samples::of(vec![50])));
    }

    #[test]
    fn a_time_in_which_the_store_was_away_is_kept_apart() {
        for (begin, end, held) in [(20, 30, 1), (2, 5, 1), (0, 200, 1), (61, 70, 0)] {
            let mut world = killed(fault::MACHINE);
            world.at(begin).fault("store", fault::POWER, Phase::Invoke);
            world.at(end).fault("store", fault::POWER, Phase::Ok);
            let found = check(&world.facts(), LEASE);
            assert_eq!((found.held.len(), found.machine.len()), (held, 1 - held), "{begin}");
        }
    }

    #[test]
    fn a_second_loss_in_a_row_is_no_sample() {
        let mut world = killed(fault::KILL);
        let loss = lost("w0", 4, (0, 1), "signal 9");
        world.dump.runs[0]
            .events
            .insert(0, crate::EventDump { seq: 0, at_ms: 0, epoch: 6, event: loss });
        let found = check(&world.facts(), LEASE);
        assert_eq!((found.process.len(), found.delayed), (0, 1));
    }

    #[test]
    fn a_worker_of_a_slot_is_found_by_its_slot_or_its_process() {
        for (name, samples) in [("slot-1", 1), ("pid-7", 1), ("slot-2", 0)] {
            let mut world = World::new();
            world.at(0).started("w0", serde_json::json!({"pid": 6, "slot": "slot-1"}));
            world.at(1).started("w1", serde_json::json!({"pid": 7, "slot": "slot-1"}));
            world.at(1).node("w1", A, 5, Phase::Invoke);
            world.at(10).fault(name, fault::KILL, Phase::Invoke);
            world.at(60).node("w2", A, 6, Phase::Invoke);
            assert_eq!(check(&world.facts(), LEASE).process.len(), samples, "{name}");
        }
    }
}
