//! Planted bugs: each is at work in a torture of its own, and a row of the report must catch it.
//!
//! What a bug needs to show itself, and the torture does not have by itself, is added to its plan.
//! Two tortures with all of that and no bug show that the rows are right to complain.

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, bail, ensure};
use holdpoint_storage::{Clock as _, SystemClock};
use holdpoint_torture_check::{Report, Targets};

use crate::{
    load::ENV_POISON,
    options::{Options, StoreKind},
    plan::{CALM, Fault, HOT, LOAD_LINK, Planned, plan},
    scenario::Torture,
    slots::Env,
};

/// The variable that chooses the bug in a program that was built with them.
const ENV_PLANTED: &str = "HOLDPOINT_PLANTED";
/// How long faults go on.
const SECONDS: u64 = 25;
/// The longest time in which a bug has to be caught: faults, drain and checks.
const CAUGHT_MAX: Duration = Duration::from_secs(60);

const QUEUE: &str = "acknowledged / lost / unexpected / duplicated / recovered";
const REFUSED: &str = "refused and stored all the same";
const STALE: &str = "stale writes accepted / refused";
const SIGNALS: &str = "signals acknowledged and not applied / applied twice";
const FOREIGN: &str = "signals to another question / refused and applied";
const STEALS: &str = "false steals from live workers";
const STUCK: &str = "stuck after heal";
const OVERLAP: &str = "overlap of two owners, ms";
const CANCELS: &str = "after a cancel: steps / nodes";
const CHECK: &str = "findings of the store's own check";
const CHAINS: &str = "faults in chains";

/// A torture with a bug, or without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trial {
    /// The bug's number; 0 is none.
    pub(crate) number: u8,
    name: &'static str,
    store: StoreKind,
    harms: &'static [Harm],
    /// The rows of which one must catch it; without a bug, those that must not complain.
    rows: &'static [&'static str],
}

/// What is done besides the faults of every torture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    /// Workers that have to drain for longer than their lease are told to end.
    Term,
    /// The server has no memory left.
    Full,
    /// The store's clock jumps ahead, and back.
    Clock,
    /// Replies to the load are dropped, so that it repeats what was done.
    LostReplies,
    /// Runs that end every worker that takes them.
    Poison,
}

const fn on_redis(
    number: u8,
    name: &'static str,
    harms: &'static [Harm],
    rows: &'static [&'static str],
) -> Trial {
    Trial { number, name, store: StoreKind::RedisAlways, harms, rows }
}

const TRIALS: [Trial; 14] = [
    on_redis(
        0,
        "none; terms, full, lost replies, poison",
        &[Harm::Term, Harm::Full, Harm::LostReplies, Harm::Poison],
        &[QUEUE, REFUSED, STALE, SIGNALS, FOREIGN, STEALS, STUCK, OVERLAP, CANCELS, CHECK, CHAINS],
    ),
    on_redis(0, "none; clock jumps", &[Harm::Clock], &[STEALS, OVERLAP]),
    on_redis(1, "drop fencing", &[], &[STALE]),
    on_redis(2, "skip the inbox", &[], &[SIGNALS]),
    Trial {
        number: 3,
        name: "acknowledge before fsync",
        store: StoreKind::Sqlite,
        harms: &[],
        rows: &[QUEUE],
    },
    on_redis(4, "pop instead of claim", &[], &[STUCK, CHECK]),
    on_redis(5, "pcall", &[Harm::Full], &[STUCK, CHECK]),
    on_redis(6, "retry not idempotent", &[Harm::LostReplies], &[REFUSED, STEALS]),
    on_redis(7, "reaper without stall hold", &[Harm::Clock], &[STEALS, OVERLAP]),
    on_redis(8, "renewal stops at SIGTERM", &[Harm::Term], &[OVERLAP]),
    on_redis(9, "counter raised at reap, not at claim", &[Harm::Poison], &[STUCK]),
    on_redis(10, "cancel only in memory", &[], &[CANCELS]),
    on_redis(11, "chain skips an event", &[], &[CHAINS]),
    on_redis(12, "token not bound to arguments", &[], &[FOREIGN]),
];

impl Trial {
    /// What the processes are told.
    pub(crate) fn env(&self) -> Env {
        let mut env = Env::new();
        if self.number > 0 {
            env.push((ENV_PLANTED.into(), self.number.to_string().into()));
        }
        if self.harms.contains(&Harm::Poison) {
            env.push((ENV_POISON.into(), "1".into()));
        }
        env
    }

    /// The faults of every torture, and those that go with the bug.
    fn plan(&self, options: &Options) -> Vec<Planned> {
        let targets = options.targets(self.store);
        let mut planned = plan(options.seed, options.seconds, &targets, self.store);
        let harms = self.harms.iter().flat_map(|harm| harm.faults(options.seconds * 1_000));
        planned.extend(harms);
        planned.sort_by_key(|planned| planned.at_ms);
        planned
    }
}

impl Harm {
    fn faults(self, end_ms: u64) -> Vec<Planned> {
        // The second SIGTERM of a drain ends it, so none comes before the first drain is over.
        let (every_ms, fault): (u64, fn(usize) -> Fault) = match self {
            Self::Term => (2_100, |number| Fault::Term(HOT + number % CALM)),
            Self::Full => (2_000, |_| Fault::Full(300)),
            Self::Clock => (3_000, |_| Fault::Clock(1_900, 400)),
            Self::LostReplies => (1_500, |_| Fault::DropReplies(LOAD_LINK, 300)),
            Self::Poison => return Vec::new(),
        };
        let times = (1..end_ms / every_ms).zip(0..);
        times
            .map(|(part, number)| Planned { at_ms: part * every_ms, fault: fault(number) })
            .collect()
    }
}

/// How a trial ended.
struct Verdict {
    /// The rows that complained, with their values.
    rows: Vec<String>,
    took: Duration,
    is_ok: bool,
}

/// Runs the trials that are asked for. Success: every bug was caught, and nothing without one.
pub(crate) fn main(options: &Options) -> Result<ExitCode> {
    ensure!(cfg!(feature = "planted"), "built without bugs: run it as `cargo xtask torture`");
    let asked = options.planted.clone().unwrap_or_default();
    let is_asked = |trial: &Trial| asked.is_empty() || asked.contains(&trial.number);
    let trials: Vec<Trial> = TRIALS.into_iter().filter(is_asked).collect();
    if trials.is_empty() {
        bail!("there is no such bug");
    }
    let mut rows = Vec::new();
    let mut failed = 0;
    for trial in trials {
        println!("# {} {}", trial.number, trial.name);
        let verdict = judge(options, trial)?;
        let word = if verdict.is_ok { "ok" } else { "FAILED" };
        failed += usize::from(!verdict.is_ok);
        let caught = match verdict.rows.is_empty() {
            true => "nothing".to_owned(),
            false => verdict.rows.join("; "),
        };
        let (number, name, store) = (trial.number, trial.name, trial.store.name());
        let seconds = verdict.took.as_secs();
        rows.push(format!("| {number} | {name} | {store} | {caught} | {seconds} | {word} |"));
        println!("{}", rows.last().map_or("", String::as_str));
    }
    println!("\n| | bug | store | caught by | s | |\n| --- | --- | --- | --- | --- | --- |");
    rows.iter().for_each(|row| println!("{row}"));
    println!("seed {}; {failed} of {} not as they should be", options.seed, rows.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn judge(options: &Options, trial: Trial) -> Result<Verdict> {
    let options = Options { seconds: SECONDS, trial: Some(trial), ..options.clone() };
    let begun = SystemClock.monotonic();
    let report = Torture::new(&options, trial.store)?.report(&trial.plan(&options), &NOTHING)?;
    let took = SystemClock.monotonic().saturating_duration_since(begun);
    let rows = complaints(&report, trial.rows)?;
    let is_ok = match trial.number {
        0 => rows.is_empty(),
        _ => !rows.is_empty() && took <= CAUGHT_MAX,
    };
    Ok(Verdict { rows, took, is_ok })
}

/// Which of the rows are not as they are to be.
fn complaints(report: &Report, rows: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for figure in rows {
        let row = report.rows().iter().find(|row| row.figure == *figure);
        let Some(row) = row else { bail!("the report has no row {figure:?}") };
        if !row.is_ok {
            found.push(format!("{}: {}", row.figure, row.value));
        }
    }
    Ok(found)
}

/// A figure that is only too small catches nothing.
const NOTHING: Targets = Targets {
    runs: 0,
    worker_kills: 0,
    store_kills: 0,
    power_cuts: 0,
    pauses: 0,
    cuts: 0,
    refused: 0,
    planted: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twelve_bugs_and_each_can_be_caught() {
        let numbers: Vec<u8> = TRIALS.iter().map(|trial| trial.number).collect();
        assert_eq!(numbers, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert!(TRIALS.iter().all(|trial| !trial.rows.is_empty()));
    }

    #[test]
    fn a_worker_is_not_told_twice_in_one_drain() {
        let times = |slot| {
            let faults = Harm::Term.faults(30_000).into_iter();
            let hits = faults.filter(move |planned| planned.fault == Fault::Term(slot));
            hits.map(|planned| planned.at_ms).collect::<Vec<_>>()
        };
        for slot in HOT..HOT + CALM {
            assert!(times(slot).len() > 5);
            assert!(times(slot).windows(2).all(|pair| pair[1] - pair[0] > 3_500));
        }
    }
}
