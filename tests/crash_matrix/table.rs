//! The rows of the matrix: each point, how it is reached, and what must come of it.

use holdpoint_testkit::CrashAction;

/// How a point is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A producer brings the run.
    Enqueue,
    /// A worker works on the run.
    Work,
    /// A worker takes back the run of another, which died.
    Reap,
    /// Somebody answers the run's question.
    Signal,
    /// An operator prunes runs that ended beside one that lives.
    Prune,
    /// An operator moves parked runs to another structure.
    Migrate,
}

/// One point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) point: &'static str,
    /// The time that counts, from 1.
    pub(crate) nth: u32,
    pub(crate) way: Way,
    /// Whether one who sleeps there comes back with a write of an owner that is none any more.
    pub(crate) is_late_write: bool,
}

const fn row(point: &'static str, nth: u32, way: Way) -> Row {
    Row { point, nth, way, is_late_write: false }
}

/// A row whose sleeper writes too late.
const fn late(point: &'static str, nth: u32) -> Row {
    Row { point, nth, way: Way::Work, is_late_write: true }
}

/// All points. The third node is the idempotent one; the second commit is that of the unsafe one.
pub(crate) const ROWS: [Row; 28] = [
    row("enqueue.before_script", 1, Way::Enqueue),
    row("enqueue.after_script", 1, Way::Enqueue),
    row("claim.before", 1, Way::Work),
    row("claim.after_before_resolve", 1, Way::Work),
    row("resolve.in", 1, Way::Work),
    row("node.before", 3, Way::Work),
    row("node.in", 3, Way::Work),
    row("node.after", 3, Way::Work),
    late("effect.before_start_commit", 1),
    row("effect.after_start_commit", 1, Way::Work),
    row("effect.in_call", 1, Way::Work),
    row("effect.after_call", 1, Way::Work),
    late("commit.before", 2),
    row("commit.after", 2, Way::Work),
    late("park.before", 1),
    row("park.after", 1, Way::Work),
    row("signal.before", 1, Way::Signal),
    row("signal.after_before_wake", 1, Way::Signal),
    row("timer.before", 1, Way::Work),
    row("timer.after", 1, Way::Work),
    late("finish.before", 1),
    row("finish.after", 1, Way::Work),
    late("reschedule.before", 1),
    late("release.before", 1),
    row("reap.between_scan_and_move", 1, Way::Reap),
    row("prune.in", 2, Way::Prune),
    row("drain.in", 1, Way::Work),
    row("migrate.between_steps", 2, Way::Migrate),
];

/// How a run ends at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It completes.
    Completed,
    /// It fails, is redriven by hand, and completes.
    Redriven,
}

impl Row {
    /// Whether an error there is a lost reply to an owner, who repeats the call until it is told
    /// what it did.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(
            self.point,
            "claim.after_before_resolve"
                | "effect.after_start_commit"
                | "commit.after"
                | "park.after"
                | "finish.after"
        )
    }

    /// How the run ends when this is done there.
    pub(crate) fn end(&self, action: CrashAction) -> End {
        match (self.point, action) {
            // A resolver that fails is no graph that is missing.
            ("resolve.in", CrashAction::Error) => End::Redriven,
            _ => End::Completed,
        }
    }
}
