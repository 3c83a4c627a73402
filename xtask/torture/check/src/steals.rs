//! False steals: a run that was taken from a worker which lived and could reach its store.
//!
//! Each `worker_lost` of a journal is held against what the worker itself did: it is false when the
//! worker gave signs of life afterwards and nothing explains the loss, that is: it was not killed
//! or told to end, it was not stopped or cut between claim and loss, and it had not given the run
//! up. A worker gives a run up when it cannot renew for most of its lease, in a long outage of the
//! store or because it had to wait for it too often, and says so (`gave_up`); it is still robbed if
//! the run's node was at work when it was declared lost.
//! An end that the supervisor saw (`signal N`, `exit N`) is the system's word and never false.
//! Cannot show: a worker that was robbed and never spoke again.

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    count::Count,
    facts::{End, Facts, Fault, MS},
    fault,
};

/// Losses of workers, as journals tell of them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Steals {
    /// All of them.
    pub losses: u64,
    /// Those from live, connected workers.
    pub stolen: Count,
    /// From workers that had given the run up, because the store was away too long.
    pub given_up: u64,
}

/// `lease_ms` is the lease of the workers.
pub(crate) fn check(facts: &Facts<'_>, lease_ms: u64) -> Steals {
    let mut found = Steals::default();
    for run in &facts.dump.runs {
        for event in &run.events {
            let Event::WorkerLost { worker, epoch, claimed_at_ms, lost_at_ms, evidence } =
                &event.event
            else {
                continue;
            };
            found.losses += 1;
            let seen = evidence.starts_with("signal ") || evidence.starts_with("exit ");
            if seen {
                continue;
            }
            let span = (facts.mono(*claimed_at_ms), facts.mono(*lost_at_ms));
            let epoch = i64::try_from(*epoch).unwrap_or(i64::MAX);
            match judge(facts, (&run.run, worker.as_str(), epoch), span, lease_ms) {
                Loss::True => {}
                Loss::GivenUp => found.given_up += 1,
                Loss::False => {
                    found.stolen.add(format!("{} from {worker}, epoch {epoch}", run.run));
                }
            }
        }
    }
    found
}

enum Loss {
    True,
    GivenUp,
    False,
}

fn judge(
    facts: &Facts<'_>,
    (run, process, epoch): (&str, &str, i64),
    (claimed, lost): (u64, u64),
    lease_ms: u64,
) -> Loss {
    let Some(worker) = facts.workers.get(process) else { return Loss::True };
    // A millisecond for the store's, which knows no finer one.
    let lived = worker.last > lost + MS && worker.killed.is_none_or(|killed| killed > lost);
    let ended = worker.stopped.is_some_and(|stopped| stopped <= lost);
    let told = |fault: &Fault<'_>| (worker.begin..=lost).contains(&fault.begin);
    let was_told = facts.hits(&[fault::TERM], process).any(told);
    let over = |fault: &Fault<'_>| fault.begin <= lost && fault.end >= claimed;
    let was_away = facts.hits(&[fault::PAUSE, fault::CUT], process).any(over);
    if !lived || ended || was_told || was_away {
        return Loss::True;
    }
    let kinds = [fault::STORE_KILL, fault::POWER, fault::STALL];
    let outage = facts.faults.iter().any(|fault| {
        kinds.contains(&fault.kind)
            && fault.begin <= lost
            && fault.end >= claimed
            // Renewals come each fifth of a lease, and a worker stops a fifth before its end.
            && fault.end.min(lost) - fault.begin >= lease_ms * MS * 3 / 5
    });
    let at_work = facts.executions_of(run).any(|execution| {
        let ours = (execution.process, execution.epoch) == (process, epoch);
        let ended_well = matches!(execution.end, End::Returned(_) | End::Unseen(_));
        ours && execution.begin <= lost && execution.end.at() > lost + MS && ended_well
    });
    let said_so = facts.history.lines.iter().any(|line| {
        line.code_text() == "gave_up"
            && line.run.as_deref() == Some(run)
            && (claimed..=lost).contains(&line.mono)
    });
    if (outage || said_so) && !at_work { Loss::GivenUp } else { Loss::False }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Phase,
        testing::{World, lost, run},
    };

    const A: (&str, &str, u64) = ("r", "a", 1);
    const LEASE: u64 = 1_000;

    /// A worker that claimed at 1,000, was declared lost at 3,000, and spoke at 4,000.
    fn world(evidence: &str) -> World {
        let mut world = World::new();
        world.at(0).worker("w1", "start").at(4_000).worker("w1", "claim");
        world.has(run("r").event(6, lost("w1", 5, (1_000, 3_000), evidence)));
        world
    }

    fn stolen(mut world: World) -> (u64, u64) {
        world.history.lines.sort_by_key(|line| line.mono);
        let found = check(&world.facts(), LEASE);
        assert_eq!(found.losses, 1);
        (found.stolen.count, found.given_up)
    }

    #[test]
    fn a_loss_that_nothing_explains_is_a_steal() {
        assert_eq!(stolen(world("lease over")), (1, 0));
        // What hit somebody else, or had passed by then, explains nothing.
        let mut other = world("lease over");
        other.at(1_500).fault("w2", fault::PAUSE, Phase::Invoke);
        other.at(100).fault("w1", fault::CUT, Phase::Invoke);
        other.at(200).fault("w1", fault::CUT, Phase::Ok);
        assert_eq!(stolen(other), (1, 0));
    }

    #[test]
    fn the_supervisors_word_is_true() {
        assert_eq!(stolen(world("signal 9")), (0, 0));
        assert_eq!(stolen(world("exit 101")), (0, 0));
    }

    #[test]
    fn a_worker_that_was_hit_was_not_robbed() {
        for kind in [fault::PAUSE, fault::CUT, fault::KILL, fault::MACHINE, fault::TERM] {
            let mut world = world("lease over");
            world.at(1_500).fault("w1", kind, Phase::Invoke);
            assert_eq!(stolen(world), (0, 0), "{kind}");
        }
    }

    #[test]
    fn a_worker_that_never_spoke_again_was_not_robbed_as_far_as_one_can_see() {
        let mut world = world("lease over");
        world.history.lines.retain(|line| line.mono < 4_000 * MS);
        assert_eq!(stolen(world), (0, 0));
    }

    #[test]
    fn a_short_outage_of_the_store_is_no_excuse() {
        for (until, expected) in [(2_100, (1, 0)), (2_600, (0, 1))] {
            let mut world = world("lease over");
            world.at(2_000).fault("store", fault::STORE_KILL, Phase::Invoke);
            world.at(until).fault("store", fault::STORE_KILL, Phase::Ok);
            assert_eq!(stolen(world), expected, "until {until}");
        }
    }

    #[test]
    fn a_worker_that_gave_the_run_up_in_time_was_not_robbed() {
        for (at, expected) in [(900, (1, 0)), (2_500, (0, 1)), (3_100, (1, 0))] {
            let mut world = world("lease over");
            let line = crate::Line::now(crate::Op::Worker, Phase::Ok, "w1").run("r");
            world.at(at).line("logs", line.code("gave_up"));
            assert_eq!(stolen(world), expected, "at {at}");
        }
    }

    #[test]
    fn a_worker_that_worked_on_through_an_outage_was_robbed() {
        for (end, expected) in [(2_400, (0, 1)), (3_500, (1, 0))] {
            let mut world = world("lease over");
            world.at(2_000).fault("store", fault::STALL, Phase::Invoke);
            world.at(2_900).fault("store", fault::STALL, Phase::Ok);
            world.at(1_500).node("w1", A, 5, Phase::Invoke).at(end).node("w1", A, 5, Phase::Ok);
            assert_eq!(stolen(world), expected, "end {end}");
        }
    }
}
