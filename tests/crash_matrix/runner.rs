//! Plays the tests, several at once, and tells how they went.

use std::{
    collections::{BTreeMap, VecDeque},
    io::Write as _,
    os::unix::process::CommandExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::{Command, ExitCode},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use holdpoint::{Clock as _, SystemClock};
use holdpoint_testkit::CRASH_POINTS;

use crate::{case::Case, cut, outage, stage::Backend, table::ROWS};

/// How many tests are played at once, unless `--test-threads=N` says otherwise. They mostly wait
/// for leases to end.
const AT_ONCE: usize = 12;

/// What can be played.
#[derive(Debug, Clone, Copy)]
enum Test {
    /// A case of the matrix.
    Case(Case),
    /// The file of a store is cut.
    Cut(Backend),
    /// A server is killed under load.
    Outage,
}

impl Test {
    /// All of them, the slowest first, so that none of them is waited for alone.
    fn all() -> impl Iterator<Item = Self> {
        let others = Backend::ALL.map(Self::Cut).into_iter().chain([Self::Outage]);
        others.chain(Case::all().into_iter().map(Self::Case))
    }

    /// The store, and what happens to it.
    fn group(&self) -> (&'static str, &'static str) {
        match self {
            Self::Case(case) => (case.backend.as_str(), case.action.as_str()),
            Self::Cut(backend) => (backend.as_str(), "cut"),
            Self::Outage => (Backend::Redis.as_str(), "kill"),
        }
    }

    /// The name by which it can be played alone.
    fn name(&self) -> String {
        match self {
            Self::Case(case) => case.name(),
            Self::Cut(backend) => format!("{}/file/cut", backend.as_str()),
            Self::Outage => format!("{}/server/kill", Backend::Redis.as_str()),
        }
    }

    /// Plays it. Answers how many late writes the store refused.
    async fn play(&self) -> usize {
        match self {
            Self::Case(case) => return case.play().await,
            Self::Cut(backend) => cut::play(*backend).await,
            Self::Outage => outage::play().await,
        }
        0
    }
}

/// Where Linux has files in memory.
const MEMORY: &str = "/dev/shm";

/// How a test went.
struct Outcome {
    test: Test,
    /// How often the store refused the one who crashed; none when the test failed.
    fenced: Option<usize>,
    took: Duration,
}

/// Plays what the arguments ask for.
pub(crate) fn main() -> ExitCode {
    assert!(ROWS.iter().map(|row| row.point).eq(CRASH_POINTS), "a row for each point");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_exact = args.iter().any(|arg| arg == "--exact");
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_asked_for = |test: &Test| {
        let name = test.name();
        let fits =
            |filter: &&String| if is_exact { name == **filter } else { name.contains(*filter) };
        filters.is_empty() || filters.iter().any(fits)
    };
    let tests: VecDeque<Test> = Test::all().filter(is_asked_for).collect();
    if args.iter().any(|arg| arg == "--list") {
        tests.iter().for_each(|test| say(&format!("{}: test", test.name())));
        return ExitCode::SUCCESS;
    }
    if let Some(error) = move_to_memory() {
        say(&format!("temporary files stay where they are: {error}"));
    }
    let at_once = args.iter().find_map(|arg| arg.strip_prefix("--test-threads="));
    let at_once = at_once.and_then(|count| count.parse().ok()).unwrap_or(AT_ONCE);
    let begin = SystemClock.monotonic();
    let outcomes = play(tests, at_once);
    report(&outcomes, SystemClock.monotonic().duration_since(begin))
}

/// Starts this program anew with its temporary files in memory, where the system has such a place.
/// What a dead process had handed to the system is not lost, so no test here needs a disk, and the
/// pauses of a busy one would use up leases. Comes back only when that cannot be done.
fn move_to_memory() -> Option<std::io::Error> {
    let place = Path::new(MEMORY);
    if std::env::temp_dir() == place || !place.is_dir() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    Some(Command::new(program).args(std::env::args_os().skip(1)).env("TMPDIR", place).exec())
}

fn play(tests: VecDeque<Test>, at_once: usize) -> Vec<Outcome> {
    let (tests, outcomes) = (Mutex::new(tests), Mutex::new(Vec::new()));
    let next = || tests.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(test) = next() {
                    let outcome = play_one(test);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn play_one(test: Test) -> Outcome {
    let begin = SystemClock.monotonic();
    // On a thread of its own, so that a panic names the test.
    let played = thread::scope(|scope| {
        let body = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(Box::pin(test.play()))
        };
        let body = move || catch_unwind(AssertUnwindSafe(body)).ok();
        let thread = thread::Builder::new().name(test.name()).spawn_scoped(scope, body);
        thread.expect("a thread starts").join().expect("panics are caught")
    });
    let outcome =
        Outcome { test, fenced: played, took: SystemClock.monotonic().duration_since(begin) };
    let word = if played.is_some() { "ok" } else { "FAILED" };
    say(&format!("{:52} {word:6} {:5.1} s", test.name(), outcome.took.as_secs_f64()));
    outcome
}

fn report(outcomes: &[Outcome], took: Duration) -> ExitCode {
    let mut table: BTreeMap<(&str, &str), (usize, usize, usize)> = BTreeMap::new();
    for Outcome { test, fenced, .. } in outcomes {
        let (good, all, refused) = table.entry(test.group()).or_default();
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
        .map(|outcome| outcome.test.name())
        .collect();
    failed.sort();
    for name in &failed {
        say(&format!("\nfailed: {name}\n  cargo test --test crash_matrix -- --exact {name}"));
    }
    let count = outcomes.len();
    say(&format!("\n{} of {count} tests in {:.1} s", count - failed.len(), took.as_secs_f64()));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(line: &str) {
    // Whoever closed our output does not want to know.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
