//! Plays the cases, several at once, and tells how they went.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use holdpoint::{Clock as _, SystemClock};
use holdpoint_testkit::CRASH_POINTS;

use crate::{case::Case, table::ROWS};

/// How many cases are played at once. They mostly wait for leases to end.
const AT_ONCE: usize = 12;

/// How a case went.
struct Outcome {
    case: Case,
    /// How often the store refused the one who crashed; none when the case failed.
    fenced: Option<usize>,
    took: Duration,
}

/// Plays what the arguments ask for.
pub(crate) fn main() -> ExitCode {
    assert!(ROWS.iter().map(|row| row.point).eq(CRASH_POINTS), "a row for each point");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_exact = args.iter().any(|arg| arg == "--exact");
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_asked_for = |case: &Case| {
        let name = case.name();
        let fits =
            |filter: &&String| if is_exact { name == **filter } else { name.contains(*filter) };
        filters.is_empty() || filters.iter().any(fits)
    };
    let cases: VecDeque<Case> = Case::all().into_iter().filter(is_asked_for).collect();
    if args.iter().any(|arg| arg == "--list") {
        cases.iter().for_each(|case| say(&format!("{}: test", case.name())));
        return ExitCode::SUCCESS;
    }
    let begin = SystemClock.monotonic();
    let outcomes = play(cases);
    report(&outcomes, SystemClock.monotonic().duration_since(begin))
}

fn play(cases: VecDeque<Case>) -> Vec<Outcome> {
    let (cases, outcomes) = (Mutex::new(cases), Mutex::new(Vec::new()));
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    let outcome = play_one(case);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn play_one(case: Case) -> Outcome {
    let begin = SystemClock.monotonic();
    // On a thread of its own, so that a panic names the case.
    let played = thread::scope(|scope| {
        let body = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(Box::pin(case.play()))
        };
        let body = move || catch_unwind(AssertUnwindSafe(body)).ok();
        let thread = thread::Builder::new().name(case.name()).spawn_scoped(scope, body);
        thread.expect("a thread starts").join().expect("panics are caught")
    });
    let outcome =
        Outcome { case, fenced: played, took: SystemClock.monotonic().duration_since(begin) };
    let word = if played.is_some() { "ok" } else { "FAILED" };
    say(&format!("{:52} {word:6} {:5.1} s", case.name(), outcome.took.as_secs_f64()));
    outcome
}

fn report(outcomes: &[Outcome], took: Duration) -> ExitCode {
    let mut table: BTreeMap<(&str, &str), (usize, usize, usize)> = BTreeMap::new();
    for Outcome { case, fenced, .. } in outcomes {
        let key = (case.backend.as_str(), case.action.as_str());
        let (good, all, refused) = table.entry(key).or_default();
        *all += 1;
        *good += usize::from(fenced.is_some());
        *refused += fenced.unwrap_or_default();
    }
    say("\nstore    action  passed  total  late writes refused");
    for ((backend, action), (good, all, refused)) in table {
        say(&format!("{backend:8} {action:6} {good:7} {all:6} {refused:20}"));
    }
    let mut failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.fenced.is_none())
        .map(|outcome| outcome.case.name())
        .collect();
    failed.sort();
    for name in &failed {
        say(&format!("\nfailed: {name}\n  cargo test --test crash_matrix -- --exact {name}"));
    }
    let count = outcomes.len();
    say(&format!("\n{} of {count} cases in {:.1} s", count - failed.len(), took.as_secs_f64()));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(line: &str) {
    // Whoever closed our output does not want to know.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
