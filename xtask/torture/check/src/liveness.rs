//! Liveness: once the faults are over, everything ends or waits for a person or a time.
//!
//! Judged only in a history that says when the faults were over; before, only safety counts.
//! *Stuck* are runs that can go on and do not. *Not healed* are workers whose last word after the
//! end of the faults is a failure, and workers that said nothing although the run of the torture
//! needed them is for the harness to see.
//! Cannot show: a run that came to its end too slowly; the harness' time limit does.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Op, Phase, count::Count, facts::Facts};

/// The last operations of a process, all of which must have succeeded.
const LAST: usize = 5;

/// What did not heal.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Liveness {
    /// Whether the history says that the faults were over.
    pub is_healed: bool,
    /// Runs that could go on and did not.
    pub stuck: Count,
    /// Processes whose last operations failed.
    pub unhealed: Count,
}

/// `unserved` are the graphs that nobody serves, so their runs wait.
pub(crate) fn check(facts: &Facts<'_>, unserved: &[String]) -> Liveness {
    let Some(healed) = facts.healed else { return Liveness::default() };
    let mut found = Liveness { is_healed: true, ..Liveness::default() };
    for run in &facts.dump.runs {
        let is_due = run.due_at_ms.is_some_and(|due| due <= facts.dump.now_ms);
        let is_stuck = match run.status.as_str() {
            "completed" | "failed" | "cancelled" => false,
            // Without a question and without a time nothing can ever wake it.
            "parked" => is_due || (run.interrupts.is_empty() && run.due_at_ms.is_none()),
            "scheduled" => is_due || run.due_at_ms.is_none(),
            _ => !unserved.contains(&run.graph),
        };
        if is_stuck {
            found.stuck.add(format!("{} of {} is {}", run.run, run.graph, run.status));
        }
    }
    let mut last: BTreeMap<&str, Vec<Phase>> = BTreeMap::new();
    for line in facts.history.lines.iter().filter(|line| line.mono > healed) {
        match (line.op, line.phase) {
            (Op::Fault | Op::Effect, _) | (_, Phase::Invoke) => {}
            // A node that asks is dropped, and one may fail on purpose.
            (Op::Node, Phase::Fail) => {}
            // A refusal is an answer like any other.
            (Op::Enqueue | Op::Signal | Op::Cancel, Phase::Fail) => {}
            (Op::Enqueue | Op::Signal | Op::Cancel | Op::Node | Op::Worker, phase) => {
                last.entry(&line.process).or_default().push(phase);
            }
        }
    }
    for (process, phases) in last {
        let failed = phases.iter().rev().take(LAST).filter(|phase| **phase != Phase::Ok).count();
        if failed > 0 {
            found.unhealed.add(format!("{process}: {failed} of its last {LAST} operations"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{WALL, World, run};
    use crate::{RunDump, fault};

    fn healed() -> World {
        let mut world = World::new();
        world.at(10).fault("all", fault::HEAL, Phase::Ok);
        world.dump.now_ms = WALL + 1_000;
        world
    }

    fn stuck(run: RunDump) -> u64 {
        let mut world = healed();
        world.has(run);
        check(&world.facts(), &["unserved".to_owned()]).stuck.count
    }

    fn due(status: &str, ms: i64) -> RunDump {
        RunDump { due_at_ms: Some(WALL + ms), ..run("r").status(status) }
    }

    #[test]
    fn what_ended_or_waits_for_something_is_not_stuck() {
        for status in ["completed", "failed", "cancelled"] {
            assert_eq!(stuck(run("r").status(status)), 0, "{status}");
        }
        let asked = RunDump { interrupts: vec!["i".into()], ..run("r").status("parked") };
        assert_eq!(stuck(asked), 0);
        assert_eq!(stuck(due("parked", 2_000)) + stuck(due("scheduled", 2_000)), 0);
        let unserved = RunDump { graph: "unserved".into(), ..run("r").status("queued") };
        assert_eq!(stuck(unserved), 0);
    }

    #[test]
    fn what_could_go_on_is_stuck() {
        for status in ["queued", "running", "parked", "scheduled"] {
            assert_eq!(stuck(run("r").status(status)), 1, "{status}");
        }
        assert_eq!(stuck(due("parked", 999)) + stuck(due("scheduled", 999)), 2);
    }

    #[test]
    fn the_last_operations_must_succeed() {
        let mut world = healed();
        world.at(9).worker("w0", "E_STORE_UNAVAILABLE");
        world.history.lines.last_mut().unwrap().phase = Phase::Fail;
        world.at(11).worker("w1", "claim");
        assert_eq!(check(&world.facts(), &[]).unhealed.count, 0);
        world.at(12).enqueue("r", Phase::Unknown);
        assert_eq!(check(&world.facts(), &[]).unhealed.count, 1);
        for at in 13..18 {
            world.at(at).enqueue("r", Phase::Ok);
        }
        assert_eq!(check(&world.facts(), &[]).unhealed.count, 0);
    }

    #[test]
    fn without_an_end_of_the_faults_nothing_is_judged() {
        let mut world = World::new();
        world.has(run("r").status("queued"));
        let found = check(&world.facts(), &[]);
        assert_eq!((found.is_healed, found.stuck.count), (false, 0));
    }
}
