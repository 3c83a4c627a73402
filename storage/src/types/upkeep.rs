//! Workers, graphs, counts, ticks, findings.

use std::fmt;

use holdpoint_graph::{Fingerprint, GraphId, QueueId, RunId, RunStatus, WorkerId};
use serde::{Deserialize, Serialize};

use crate::{ClaimedRun, Lane};

/// A worker's sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRecord {
    /// Its id.
    pub worker: WorkerId,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// When it started, in ms since 1970.
    pub since_ms: i64,
    /// When it last gave a sign; set by the store.
    pub beat_at_ms: i64,
    /// Whether it takes no more runs.
    pub is_draining: bool,
    /// What it serves.
    pub graphs: Vec<(GraphId, Fingerprint)>,
    /// From which queues.
    pub queues: Vec<QueueId>,
    /// How many runs at once.
    pub concurrency: usize,
    /// After how many ms without a sign it counts as lost.
    pub lost_after_ms: i64,
    /// Why it takes no runs although it should, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The runs it holds; set by the store.
    #[serde(default)]
    pub runs: Vec<RunId>,
}

/// A graph that some worker published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphRecord {
    /// Its id.
    pub graph: GraphId,
    /// Its structure.
    pub fingerprint: Fingerprint,
    /// Its drawing as JSON: nodes, edges, gates with their schemas.
    pub drawing: String,
    /// When it was first published, in ms since 1970; set by the store.
    pub published_at_ms: i64,
}

/// The counts of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneStats {
    /// The lane.
    pub lane: Lane,
    /// How many runs wait in it.
    pub queued: u64,
    /// When the oldest of them was enqueued.
    pub oldest_created_ms: Option<i64>,
}

/// Counts over the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The store's time.
    pub now_ms: i64,
    /// Runs per state, all seven, in the order of [`RunStatus::ALL`].
    pub counts: Vec<(RunStatus, u64)>,
    /// The lanes that hold runs.
    pub lanes: Vec<LaneStats>,
    /// Open questions.
    pub open_questions: u64,
    /// Queues that are paused.
    pub paused: Vec<QueueId>,
}

/// What a maintenance tick may do.
#[derive(Debug, Clone)]
pub struct TickRequest {
    /// The worker that ticks; it owns the closing claims.
    pub worker: WorkerId,
    /// The nonce of the closing claims.
    pub nonce: String,
    /// The lease of the closing claims, in ms.
    pub lease_ms: i64,
    /// How long after its end a lease is taken for lost, in ms.
    pub grace_ms: i64,
    /// The waits before the next claim of a run that lost 1, 2, 3 … workers in a row, in ms.
    pub loss_delays_ms: Vec<i64>,
    /// A gap between ticks above which nothing is reaped for one lease, in ms.
    pub hold_after_ms: i64,
    /// Whether the caller's monotonic time and the store's disagree.
    pub doubt: bool,
    /// The most runs of each kind.
    pub max: usize,
}

/// What a tick did.
#[derive(Debug, Clone, Default)]
pub struct Ticked {
    /// The store's time.
    pub now_ms: i64,
    /// Until when nothing is reaped, when the store stalled.
    pub held_until_ms: Option<i64>,
    /// The runs that lost their worker.
    pub reaped: Vec<RunId>,
    /// How many timers fired.
    pub fired: usize,
    /// Runs that must end and have no owner (expired, or cancelled by a newer run of their
    /// session): claimed for the caller, who ends them without a graph.
    pub closing: Vec<ClaimedRun>,
}

/// How long ended runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Completed and cancelled runs, in ms.
    pub done_ms: i64,
    /// Failed runs, in ms.
    pub failed_ms: i64,
    /// Idempotency keys after their run's creation, in ms.
    pub key_ms: i64,
}

impl Default for Retention {
    /// 3 days, 30 days, 24 hours.
    fn default() -> Self {
        const DAY_MS: i64 = 24 * 3_600 * 1_000;
        Self { done_ms: 3 * DAY_MS, failed_ms: 30 * DAY_MS, key_ms: DAY_MS }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warn,
    /// To be mended.
    Bad,
}

/// What a check of the store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub level: Level,
    /// Which check.
    pub check: String,
    /// What was found.
    pub text: String,
    /// What to do.
    pub fix: String,
}

impl Finding {
    /// A finding.
    pub fn new(level: Level, check: &str, text: impl fmt::Display, fix: &str) -> Self {
        Self { level, check: check.to_owned(), text: text.to_string(), fix: fix.to_owned() }
    }
}
