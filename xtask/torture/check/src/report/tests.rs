//! The table: what a good run shows, and that each row can be missed.

use super::*;
use crate::{
    Count, Dump, Extra, Phase, check, fault,
    testing::{World, claimed, completed, done, lost, run},
};
use holdpoint_storage::{Finding, Level};

/// A small run in which all is well: one kill, and a second owner that ends the run.
fn good() -> (World, Extra, Targets) {
    let mut world = World::new();
    let a = ("r", "a", 1);
    world.at(1).enqueue("r", Phase::Invoke).at(2).enqueue("r", Phase::Ok);
    world.at(3).node("w1", a, 5, Phase::Invoke).at(9).fault("w1", fault::KILL, Phase::Invoke);
    world.at(30).node("w2", a, 6, Phase::Invoke).at(40).node("w2", a, 6, Phase::Ok);
    world.at(50).worker("w3", "E_FENCED").fault("all", fault::HEAL, Phase::Ok);
    let journal = run("r").event(6, lost("w1", 5, (2, 12), "signal 9"));
    let journal = journal.event(6, claimed("w2", 6, 20)).event(6, done("a", 1));
    world.has(journal.event(6, completed()));
    world.dump.findings.push(Finding::new(Level::Ok, "places", "nothing found", ""));
    let extra = Extra { lease_ms: 1_000, grace_ms: 200, ..Extra::default() };
    let targets = Targets {
        runs: 1,
        worker_kills: 1,
        store_kills: 0,
        power_cuts: 0,
        pauses: 0,
        cuts: 0,
        refused: 1,
        planted: None,
    };
    (world, extra, targets)
}

#[test]
fn a_good_run_misses_nothing() {
    let (world, extra, targets) = good();
    let found = check(&world.history, &world.dump, &extra);
    let report = found.report(&targets);
    assert!(report.missed().is_empty(), "{report}{:#?}", found.faults());
    assert!(found.faults().is_empty());
    let text = report.to_string();
    let first = "| acknowledged / lost / unexpected / duplicated / recovered \
                 | ≥ 1 / 0 / 0 / 0 / n | 1 / 0 / 0 / 0 / 0 | ok |";
    assert_eq!(text.lines().nth(2), Some(first));
    let recovery = "| p99 < 1000; p99 ≤ 2200 | 21 / 21 / 21 of 1; –; \
                    not judged, the store was away too: – | ok |";
    assert!(text.contains(recovery), "{text}");
    assert_eq!(report.to_json()["rows"][4]["value"], "1.00");
}

type Spoil = Box<dyn Fn(&mut Findings)>;

/// Every row can be missed, so no row is there for show.
#[test]
fn each_row_can_be_missed() {
    let one = || Count::of(&["here".to_owned()]);
    let slow = || Samples::of(vec![60_000]);
    let spoil: Vec<(usize, Spoil)> = vec![
        (0, Box::new(|f| f.queue.acknowledged = 0)),
        (0, Box::new(move |f| f.queue.lost = one())),
        (0, Box::new(move |f| f.queue.unexpected = one())),
        (0, Box::new(move |f| f.queue.duplicated = one())),
        (1, Box::new(|f| f.injected.worker_kills = 0)),
        (2, Box::new(move |f| f.fencing.accepted = one())),
        (2, Box::new(|f| f.fencing.refused = 0)),
        (3, Box::new(move |f| f.nodes.after_commit = one())),
        (4, Box::new(|f| f.nodes.redone = 2)),
        (5, Box::new(move |f| f.effects.unsafe_twice = one())),
        (6, Box::new(move |f| f.signals.not_applied = one())),
        (6, Box::new(move |f| f.signals.applied_twice = one())),
        (7, Box::new(move |f| f.steals.stolen = one())),
        (8, Box::new(move |f| f.recovery.process = slow())),
        (8, Box::new(move |f| f.recovery.machine = slow())),
        (8, Box::new(|f| f.recovery.process = Samples::default())),
        (9, Box::new(move |f| f.liveness.stuck = one())),
        (9, Box::new(|f| f.liveness.is_healed = false)),
        (10, Box::new(|f| f.fencing.overlap_ms = 1)),
        (11, Box::new(|f| f.leftovers.push("sleep 1000".to_owned()))),
        (12, Box::new(|f| f.planted = Some((vec![], vec!["mutant-01".to_owned()])))),
        (13, Box::new(move |f| f.queue.refused_but_stored = one())),
        (14, Box::new(move |f| f.signals.foreign = one())),
        (14, Box::new(move |f| f.signals.refused_but_applied = one())),
        (15, Box::new(move |f| f.nodes.ran_ahead = one())),
        (15, Box::new(move |f| f.nodes.never_ran = one())),
        (16, Box::new(move |f| f.effects.other_key = one())),
        (16, Box::new(move |f| f.effects.shared_key = one())),
        (16, Box::new(move |f| f.effects.unclassed = one())),
        (17, Box::new(move |f| f.cancels.stepped = one())),
        (17, Box::new(move |f| f.cancels.began = one())),
        (18, Box::new(move |f| f.cancels.unended = one())),
        (19, Box::new(move |f| f.stored.conservation = one())),
        (20, Box::new(move |f| f.stored.chain = one())),
        (21, Box::new(move |f| f.liveness.unhealed = one())),
        (22, Box::new(move |f| f.canary.found = one())),
    ];
    let (world, extra, targets) = good();
    let found = check(&world.history, &world.dump, &extra);
    let report = found.report(&targets);
    let judged = report.rows().iter().filter(|row| row.target != ANY).count();
    let mut spoilt = std::collections::BTreeSet::new();
    for (row, spoil) in spoil {
        let mut found = found.clone();
        spoil(&mut found);
        let report = found.report(&targets);
        let missed: Vec<_> = report.rows().iter().map(|row| !row.is_ok).collect();
        assert!(missed[row], "row {row} of\n{report}");
        assert_eq!(report.missed().len(), 1, "{report}");
        spoilt.insert(row);
    }
    assert_eq!(spoilt.len(), judged);
}

#[test]
fn losses_are_allowed_only_where_the_mode_allows_them_and_a_fault_explains_them() {
    let (mut world, mut extra, mut targets) = good();
    targets.runs = 2;
    world.at(60).enqueue("gone", Phase::Ok);
    let missed = |world: &World, extra: &Extra| {
        check(&world.history, &world.dump, extra).report(&targets).missed().len()
    };
    extra.may_lose = true;
    assert_eq!(missed(&world, &extra), 1);
    world.at(90).fault("store", fault::POWER, Phase::Invoke);
    assert_eq!(missed(&world, &extra), 0);
    extra.may_lose = false;
    assert_eq!(missed(&world, &extra), 1);
}

#[test]
fn planted_bugs_are_counted_where_they_belong_to_the_run() {
    let (world, mut extra, mut targets) = good();
    targets.planted = Some(1);
    let missed = |extra: &Extra| {
        check(&world.history, &Dump { ..world.dump.clone() }, extra).report(&targets).missed()
    };
    assert_eq!(missed(&extra), ["planted bugs caught: –, not 1 of 1"]);
    extra.planted = Some((vec!["mutant-01".to_owned()], vec![]));
    assert!(missed(&extra).is_empty());
}

#[test]
fn targets_scale() {
    let small = Targets::push().scaled(10);
    assert_eq!((small.runs, small.worker_kills, small.power_cuts), (300, 100, 2));
    assert_eq!(Targets::push().scaled(1).power_cuts, 1);
}
