//! The model: who may write what next, checked over every order of events within bounds.
//!
//! One run, its workers and the people around it, with everything that decides who may write:
//! claim, renewal, release, loss and re-claim, commit and park with lost replies and late copies,
//! signals that come early, twice or for another opening, cancel against finish, the counts of
//! lost workers, redrive, and a failover that forgets a claim. Every move of the run goes through
//! the transition functions of `Life`; what the stores do around them is written here as plainly
//! as possible. Time, payloads and several runs are not modelled.
//!
//! A model that finds nothing proves little. So each guard can be left out, and a counterexample
//! must be found for each; and the good ends must be reachable.

use std::fmt::Write as _;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use rules::{Guard, Rules};
use world::{Checked, World};

mod journal;
mod owner;
mod properties;
mod rules;
mod store;
mod witness;
mod world;
mod worlds;

/// Explores a world with all guards: nothing is wrong in it, and each of `reached` is in it.
fn check(world: &'static World, reached: &[&str]) {
    let checked = Checked { world, rules: Rules { without: None } };
    let names = names(&checked, Expectation::Sometimes);
    let checker = checked.checker().threads(1).spawn_bfs().join();
    let found = checker.discoveries();
    eprintln!(
        "{}: {} states, depth {}, {} workers, reached {} of {}",
        world.name,
        checker.unique_state_count(),
        checker.max_depth(),
        world.workers,
        found.keys().filter(|name| names.contains(*name)).count(),
        names.len()
    );
    for (name, path) in &found {
        let steps = path.clone().into_actions();
        assert!(names.contains(name), "{}: not so: {name}, after {steps:?}", world.name);
    }
    for name in reached {
        assert!(found.contains_key(name), "{}: not reached: {name}", world.name);
    }
}

fn names(checked: &Checked, expectation: Expectation) -> Vec<&'static str> {
    let is_it = |property: &Property<Checked>| property.expectation == expectation;
    checked.properties().into_iter().filter(is_it).map(|property| property.name).collect()
}

/// The promise that breaks first without the guard, and in how many steps.
fn broken_without(guard: Guard) -> Option<(&'static str, usize)> {
    let checked = Checked { world: worlds::showing(guard), rules: Rules { without: Some(guard) } };
    let promises = names(&checked, Expectation::Always);
    let checker = checked.checker().threads(1).finish_when(HasDiscoveries::AnyFailures);
    let found = checker.spawn_bfs().join().discoveries();
    let broken = found.into_iter().filter(|(name, _)| promises.contains(name));
    broken.map(|(name, path)| (name, path.into_actions().len())).min_by_key(|(_, steps)| *steps)
}

#[test]
fn each_signal_answers_its_own_opening_or_is_refused() {
    check(&worlds::SIGNALS, &[properties::FINISHED, properties::TAKEN_AT_PARK]);
}

#[test]
fn an_answer_never_reaches_the_next_visit_of_its_gate() {
    check(&worlds::VISITS, &[properties::FINISHED, properties::TAKEN_AT_PARK]);
}

#[test]
fn a_cancel_and_a_finish_leave_one_end() {
    check(&worlds::CANCELS, &[properties::CANCEL_WINS, properties::FINISH_WINS]);
}

#[test]
fn a_run_that_loses_its_workers_is_given_up_in_time() {
    let reached = [
        properties::CRASH_LOOP,
        properties::FINISHED_AFTER_LOSSES,
        properties::FINISHED_AFTER_REDRIVE,
    ];
    check(&worlds::CRASHES, &reached);
}

#[test]
fn a_repeat_or_a_late_copy_of_a_commit_has_one_effect() {
    check(&worlds::REPLIES, &[properties::FINISHED, properties::REPEAT_KNOWN]);
}

#[test]
fn only_the_newest_owner_writes() {
    check(&worlds::ZOMBIES, &[properties::FINISHED, properties::FINISHED_AFTER_LOSSES]);
}

#[test]
fn no_guard_can_be_left_out_unnoticed() {
    let (mut table, mut killed) = (String::new(), 0);
    for guard in Guard::ALL {
        let world = worlds::showing(guard).name;
        let line = match broken_without(guard) {
            Some((name, steps)) => {
                killed += 1;
                format!("{guard:?}, {world}: killed in {steps} steps: not so: {name}")
            }
            None => format!("{guard:?}, {world}: SURVIVES"),
        };
        writeln!(table, "{line}").expect("a string takes it");
    }
    let planted = Guard::ALL.len();
    eprintln!("{table}mutants killed / planted: {killed} / {planted}");
    assert_eq!(killed, planted, "{table}");
}
