//! Node ledger: how often nodes really ran, against what the journal says is done.
//!
//! *After the commit*: a node ran under an owner that came after the one whose `node_completed`
//! stands in the journal, or again under that same owner after it had returned. Both are told by
//! epochs and by the order of one process' lines, so no two clocks are compared.
//! *Redone*: a node ran again because the worker in which it ran was killed. It shows how much work
//! a death costs; at most one node of each branch of each run the worker had.
//! Cannot show: a node that ran without a line, which the harness' own nodes never do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    count::Count,
    facts::{End, Execution, Facts},
    fault,
};

/// How often nodes ran.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Nodes {
    /// Calls of node functions.
    pub executions: u64,
    /// Calls by an owner after the node's commit.
    pub after_commit: Count,
    /// Nodes in the journal as done that nobody ran.
    pub never_ran: Count,
    /// Nodes that ran again because their worker was killed.
    pub redone: u64,
    /// Kills of workers.
    pub kills: u64,
    /// Nodes that ran although the one before them was not committed: a kill cost two.
    pub ran_ahead: Count,
}

impl Nodes {
    /// Nodes redone per kill, mean.
    #[must_use]
    pub fn redone_per_kill(&self) -> f64 {
        if self.kills == 0 {
            return 0.0;
        }
        self.redone as f64 / self.kills as f64
    }
}

type Task<'a> = (&'a str, &'a str, u64);

pub(crate) fn check(facts: &Facts<'_>) -> Nodes {
    let mut tasks: BTreeMap<Task<'_>, Vec<&Execution<'_>>> = BTreeMap::new();
    for execution in &facts.executions {
        let task = (execution.run, execution.node, execution.visit);
        tasks.entry(task).or_default().push(execution);
    }
    let mut found = Nodes {
        executions: facts.executions.len() as u64,
        kills: facts.times(fault::KILL) + facts.times(fault::MACHINE),
        ..Nodes::default()
    };
    // Only a history with node lines can say that a node never ran.
    let with_lines: BTreeSet<&str> = facts.executions.iter().map(|e| e.run).collect();
    let commits = commits(facts);
    for (task, epoch) in &commits {
        match tasks.get(task) {
            Some(executions) => after(*epoch, executions, &mut found),
            None if with_lines.contains(task.0) => {
                found.never_ran.add(format!("{} {}#{}", task.0, task.1, task.2));
            }
            None => {}
        }
    }
    redone(facts, &tasks, &mut found);
    found
}

/// The epoch of the owner that committed each task. Answers and operators (epoch 0) end tasks
/// without an owner's work.
fn commits<'a>(facts: &Facts<'a>) -> HashMap<Task<'a>, i64> {
    let mut found = HashMap::new();
    for run in &facts.dump.runs {
        for event in run.events.iter().filter(|event| event.epoch != 0) {
            if let Event::NodeCompleted { task, .. } = &event.event {
                let key = (run.run.as_str(), task.node.as_str(), u64::from(task.visit));
                found.insert(key, i64::try_from(event.epoch).unwrap_or(i64::MAX));
            }
        }
    }
    found
}

fn after(epoch: i64, executions: &[&Execution<'_>], found: &mut Nodes) {
    let mut own: Option<(&str, u64)> = None;
    for execution in executions {
        let is_after = match (execution.epoch.cmp(&epoch), own) {
            (std::cmp::Ordering::Greater, _) => true,
            // The same owner again, or another one with the same epoch.
            (std::cmp::Ordering::Equal, Some((nonce, returned))) => {
                execution.nonce != nonce || execution.begin > returned
            }
            (std::cmp::Ordering::Equal, None) | (std::cmp::Ordering::Less, _) => false,
        };
        if is_after {
            found.after_commit.add(format!("{}, done under epoch {epoch}", execution.place()));
        }
        if let (true, End::Returned(at)) = (execution.epoch == epoch, execution.end) {
            own = own.or(Some((execution.nonce, at)));
        }
    }
}

/// Counts what kills cost: tasks that ran again because their first owner was killed before it had
/// committed them.
fn redone(facts: &Facts<'_>, tasks: &BTreeMap<Task<'_>, Vec<&Execution<'_>>>, found: &mut Nodes) {
    let mut owners: BTreeMap<(&str, (i64, &str)), Vec<&Execution<'_>>> = BTreeMap::new();
    for executions in tasks.values() {
        for pair in executions.windows(2) {
            let [first, second] = pair else { continue };
            if first.pair() != second.pair() && died(facts, first, second) {
                owners.entry((first.run, first.pair())).or_default().push(first);
            }
        }
    }
    let branches = branches(facts);
    for redone in owners.values_mut() {
        found.redone += redone.len() as u64;
        redone.sort_by_key(|execution| execution.begin);
        // Branches run side by side; what ran one after the other had a commit between.
        for (at, later) in redone.iter().enumerate() {
            let ended_before = |earlier: &&&Execution<'_>| {
                matches!(earlier.end, End::Returned(at) if at < later.begin)
                    && match (branches.get(&task(earlier)), branches.get(&task(later))) {
                        (Some(one), Some(other)) => one == other,
                        (None, _) | (_, None) => true,
                    }
            };
            let earlier = redone.iter().take(at).find(ended_before);
            if let Some(earlier) = earlier {
                found.ran_ahead.add(format!(
                    "{} before {} was committed",
                    later.node,
                    earlier.place()
                ));
            }
        }
    }
}

/// In which branch each task was, as far as it was completed.
fn branches<'a>(facts: &Facts<'a>) -> HashMap<Task<'a>, &'a [u32]> {
    let mut found = HashMap::new();
    for run in &facts.dump.runs {
        for event in &run.events {
            if let Event::NodeCompleted { task, .. } = &event.event {
                let key = (run.run.as_str(), task.node.as_str(), u64::from(task.visit));
                found.insert(key, task.branch.as_slice());
            }
        }
    }
    found
}

const fn task<'a>(execution: &Execution<'a>) -> Task<'a> {
    (execution.run, execution.node, execution.visit)
}

fn died(facts: &Facts<'_>, first: &Execution<'_>, second: &Execution<'_>) -> bool {
    match first.end {
        End::Killed(_) => true,
        // The injector says what it is about to do: a line may come after the kill's.
        End::Returned(_) => {
            let killed = facts.workers.get(first.process).and_then(|worker| worker.killed);
            killed.is_some_and(|killed| killed < second.begin)
        }
        End::Failed(_) | End::Suspended(_) | End::Unseen(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Phase,
        testing::{World, claimed, done, run},
    };

    const A: (&str, &str, u64) = ("r", "a", 1);
    const B: (&str, &str, u64) = ("r", "b", 1);

    /// Two nodes; the first worker is killed in the second of them.
    fn killed() -> World {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(2).node("w1", A, 5, Phase::Ok);
        world.at(3).node("w1", B, 5, Phase::Invoke).at(4).fault("w1", fault::KILL, Phase::Invoke);
        world.at(6).node("w2", B, 6, Phase::Invoke).at(7).node("w2", B, 6, Phase::Ok);
        let journal = run("r").event(5, claimed("w1", 5, 0)).event(5, done("a", 1));
        world.has(journal.event(6, claimed("w2", 6, 5)).event(6, done("b", 1)));
        world
    }

    #[test]
    fn a_kill_costs_the_node_it_hit() {
        let found = check(&killed().facts());
        assert_eq!((found.executions, found.kills, found.redone), (3, 1, 1));
        assert!((found.redone_per_kill() - 1.0).abs() < f64::EPSILON);
        assert_eq!((found.after_commit.count, found.ran_ahead.count), (0, 0));
        assert_eq!(found.never_ran.count, 0);
    }

    #[test]
    fn a_node_that_returned_and_was_not_committed_counts_too() {
        for returned in [3, 5] {
            let mut world = World::new();
            world.at(1).node("w1", A, 5, Phase::Invoke).at(4).fault(
                "w1",
                fault::KILL,
                Phase::Invoke,
            );
            world.at(returned).node("w1", A, 5, Phase::Ok);
            world.at(6).node("w2", A, 6, Phase::Invoke).at(7).node("w2", A, 6, Phase::Ok);
            world.history.lines.sort_by_key(|line| line.mono);
            world.has(run("r").event(6, claimed("w2", 6, 5)).event(6, done("a", 1)));
            assert_eq!(check(&world.facts()).redone, 1, "returned at {returned}");
        }
    }

    #[test]
    fn a_node_that_is_done_may_not_run_under_a_later_owner() {
        let mut world = killed();
        world.at(5).node("w2", A, 6, Phase::Invoke);
        assert_eq!(check(&world.facts()).after_commit.count, 1);
    }

    #[test]
    fn a_node_that_is_done_may_not_run_again_under_its_owner() {
        let mut world = killed();
        world.at(9).node("w2", B, 6, Phase::Invoke);
        assert_eq!(check(&world.facts()).after_commit.count, 1);
    }

    #[test]
    fn a_node_that_is_done_may_not_run_under_another_owner_with_the_same_epoch() {
        let mut world = killed();
        world.at(9).node("w3", B, 6, Phase::Invoke);
        world.history.lines.last_mut().unwrap().nonce = Some("other".to_owned());
        assert_eq!(check(&world.facts()).after_commit.count, 1);
    }

    #[test]
    fn attempts_and_earlier_owners_may_run_what_was_not_done() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(2).node("w1", A, 5, Phase::Fail);
        world.at(3).node("w1", A, 5, Phase::Invoke).at(4).node("w1", A, 5, Phase::Ok);
        world.has(run("r").event(5, claimed("w1", 5, 0)).event(5, done("a", 1)));
        let found = check(&world.facts());
        assert_eq!((found.after_commit.count, found.redone), (0, 0));
    }

    #[test]
    fn a_node_that_followed_an_uncommitted_one_ran_ahead() {
        let mut world = killed();
        world.at(5).node("w2", A, 6, Phase::Invoke).at(5).node("w2", A, 6, Phase::Ok);
        world.dump.runs[0].events.remove(1);
        world.history.lines.sort_by_key(|line| line.mono);
        let found = check(&world.facts());
        assert_eq!((found.redone, found.ran_ahead.count), (2, 1));
    }

    #[test]
    fn what_is_done_must_have_run() {
        let mut world = killed();
        world.dump.runs[0].events.push(crate::EventDump {
            seq: 4,
            at_ms: 0,
            epoch: 6,
            event: done("c", 1),
        });
        assert_eq!(check(&world.facts()).never_ran.examples, ["r c#1"]);
    }
}
