//! Named points at which a program dies, stands still or meets an error: for tests that ask what
//! the others make of it.
//!
//! Product code has no such points. Those at a store's boundary are found by a [`CrashStore`]
//! around it, which knows the calls and looks at the store before them; a test's own nodes and
//! resolver name theirs with [`Crash::at`].
//!
//! ```text
//! HOLDPOINT_CRASH=commit.after:2  HOLDPOINT_CRASH_ACTION=abort|sleep|error
//! HOLDPOINT_CRASH_LOG=FILE        `hit POINT`, `woke POINT`, `fenced CALL`,
//!                             `repeated done|refused`: a line each
//! ```
//! A process that sleeps makes no store call until the file `FILE.wake` is there; its other
//! threads and its clock go on, as behind a network that swallows everything.

mod store;

use std::{
    fmt,
    fs::OpenOptions,
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::until;

pub use store::CrashStore;

/// All points. What is `in` or `between` stands inside of one call: at a store's boundary that is
/// the moment between what was looked at and the call that acts on it, or between two such calls.
pub const CRASH_POINTS: [&str; 28] = [
    "enqueue.before_script",
    "enqueue.after_script",
    "claim.before",
    "claim.after_before_resolve",
    "resolve.in",
    "node.before",
    "node.in",
    "node.after",
    "effect.before_start_commit",
    "effect.after_start_commit",
    "effect.in_call",
    "effect.after_call",
    "commit.before",
    "commit.after",
    "park.before",
    "park.after",
    "signal.before",
    "signal.after_before_wake",
    "timer.before",
    "timer.after",
    "finish.before",
    "finish.after",
    "reschedule.before",
    "release.before",
    "reap.between_scan_and_move",
    "prune.in",
    "drain.in",
    "migrate.between_steps",
];

/// The longest that a process sleeps; then nobody wakes it any more.
const SLEEP_MAX: Duration = Duration::from_secs(300);

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashAction {
    /// The process aborts.
    Abort,
    /// The process makes no store call until it is woken.
    Sleep,
    /// What is done there fails. After a store's call: it was done, and its reply is lost.
    Error,
}

impl CrashAction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Abort, Self::Sleep, Self::Error];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Sleep => "sleep",
            Self::Error => "error",
        }
    }
}

/// The error at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashError(&'static str);

impl fmt::Display for CrashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an input/output error at {}", self.0)
    }
}

impl std::error::Error for CrashError {}

/// At which point this process crashes, if at any. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Crash(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    plan: Option<Plan>,
    log: Option<PathBuf>,
    times: AtomicU64,
    is_still: watch::Sender<bool>,
    /// The id of the call whose reply was lost.
    lost: OnceLock<String>,
}

#[derive(Debug)]
struct Plan {
    point: &'static str,
    nth: u64,
    action: CrashAction,
}

impl Crash {
    /// What the environment says; without `HOLDPOINT_CRASH` nothing ever happens.
    ///
    /// # Panics
    ///
    /// When it says something that is no plan.
    #[must_use]
    pub fn from_env() -> Self {
        let plan = std::env::var("HOLDPOINT_CRASH").ok().map(|at| {
            let action = std::env::var("HOLDPOINT_CRASH_ACTION").unwrap_or_default();
            Plan::new(&at, &action)
        });
        let log = std::env::var_os("HOLDPOINT_CRASH_LOG").map(PathBuf::from);
        Self::of(plan, log)
    }

    fn of(plan: Option<Plan>, log: Option<PathBuf>) -> Self {
        let (times, is_still) = (AtomicU64::new(0), watch::Sender::new(false));
        Self(Arc::new(Shared { plan, log, times, is_still, lost: OnceLock::new() }))
    }

    /// The point at which this process crashes.
    #[must_use]
    pub fn point(&self) -> Option<&'static str> {
        self.0.plan.as_ref().map(|plan| plan.point)
    }

    /// Whether this process is yet to crash.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let times = self.0.times.load(Ordering::Relaxed);
        self.0.plan.as_ref().is_some_and(|plan| times < plan.nth)
    }

    /// Passes a point: does what the plan says when it is the one, for the n-th time.
    ///
    /// # Errors
    /// The error that the plan asks for.
    ///
    /// # Panics
    ///
    /// When nobody wakes the process for five minutes.
    pub async fn at(&self, point: &'static str) -> Result<(), CrashError> {
        if self.0.plan.as_ref().is_none_or(|plan| plan.point != point) {
            return Ok(());
        }
        let crash = self.clone();
        let passed = tokio::task::spawn_blocking(move || crash.at_blocking(point)).await;
        passed.expect("somebody wakes a process that sleeps")
    }

    /// [`Crash::at`] where nothing can be awaited: the thread stands still too.
    ///
    /// # Errors
    /// The error that the plan asks for.
    ///
    /// # Panics
    ///
    /// When nobody wakes the process for five minutes.
    pub fn at_blocking(&self, point: &'static str) -> Result<(), CrashError> {
        match self.hit(point) {
            None => Ok(()),
            Some(CrashAction::Error) => Err(CrashError(point)),
            Some(CrashAction::Abort) => std::process::abort(),
            Some(CrashAction::Sleep) => {
                self.0.is_still.send_replace(true);
                until("the process to be woken", SLEEP_MAX, || self.is_woken().then_some(()));
                self.log("woke", point);
                self.0.is_still.send_replace(false);
                Ok(())
            }
        }
    }

    /// What to do at a point, if it is the one and its time has come.
    fn hit(&self, point: &str) -> Option<CrashAction> {
        let plan = self.0.plan.as_ref().filter(|plan| plan.point == point)?;
        let is_nth = self.0.times.fetch_add(1, Ordering::Relaxed) + 1 == plan.nth;
        is_nth.then(|| {
            self.log("hit", point);
            plan.action
        })
    }

    fn is_woken(&self) -> bool {
        self.0.log.as_ref().is_some_and(|log| log.with_added_extension("wake").exists())
    }

    /// Waits while the process stands still.
    async fn while_still(&self) {
        // The sender lives as long as `self`, so the wait ends only with the condition.
        let _ = self.0.is_still.subscribe().wait_for(|is_still| !is_still).await;
    }

    /// The reply of the call with this id is lost.
    fn lose(&self, id: &str) {
        self.0.lost.set(id.to_owned()).expect("one point is hit once");
    }

    fn has_lost(&self, id: &str) -> bool {
        self.0.lost.get().is_some_and(|lost| lost == id)
    }

    fn log(&self, what: &str, about: &str) {
        let Some(path) = &self.0.log else { return };
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
        file.write_all(format!("{what} {about}\n").as_bytes()).expect("the log takes a line");
    }
}

impl Plan {
    fn new(at: &str, action: &str) -> Self {
        let (point, nth) = at.split_once(':').unwrap_or((at, "1"));
        let known = CRASH_POINTS.into_iter().find(|known| *known == point);
        let point = known.unwrap_or_else(|| panic!("there is no crash point {point:?}"));
        let nth = nth.parse().unwrap_or_else(|error| panic!("{nth:?} is no number: {error}"));
        let action = CrashAction::ALL.into_iter().find(|known| known.as_str() == action);
        let action = action.expect("HOLDPOINT_CRASH_ACTION is abort, sleep or error");
        Self { point, nth, action }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(at: &str, action: &str, log: Option<PathBuf>) -> Crash {
        Crash::of(Some(Plan::new(at, action)), log)
    }

    #[tokio::test]
    async fn only_the_nth_time_of_the_planned_point_counts() {
        let scratch = crate::Scratch::new();
        let log = scratch.file("log");
        let crash = crash("node.in:2", "error", Some(log.clone()));
        for (point, is_fine) in
            [("node.in", true), ("node.after", true), ("node.in", false), ("node.in", true)]
        {
            assert_eq!(crash.at(point).await.is_ok(), is_fine, "{point}");
        }
        assert_eq!(std::fs::read_to_string(log).unwrap(), "hit node.in\n");
    }

    #[tokio::test]
    async fn who_sleeps_is_woken_by_a_file_and_keeps_the_others_still() {
        let scratch = crate::Scratch::new();
        let crash = crash("node.in", "sleep", Some(scratch.file("log")));
        let sleeper = tokio::spawn({
            let crash = crash.clone();
            async move { crash.at("node.in").await }
        });
        let is_still = async || crash.0.is_still.borrow().then_some(());
        crate::until_async("the sleep", Duration::from_secs(10), is_still).await;
        std::fs::write(scratch.file("log.wake"), "").unwrap();
        crash.while_still().await;
        assert!(sleeper.await.unwrap().is_ok());
        assert_eq!(
            std::fs::read_to_string(scratch.file("log")).unwrap(),
            "hit node.in\nwoke node.in\n"
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_no_plan() {
        for (at, action) in [("node.inn", "abort"), ("node.in:x", "abort"), ("node.in", "kill")] {
            assert!(std::panic::catch_unwind(|| Plan::new(at, action)).is_err(), "{at} {action}");
        }
    }
}
