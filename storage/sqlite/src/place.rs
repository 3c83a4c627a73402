//! Where a run stands: the columns that the indexes are made of, derived from its head.
//!
//! Nothing else computes them, so an index can only disagree with a head when somebody wrote the
//! file by hand. A run whose place stays the same is written back without touching any index.

use holdpoint_graph::RunStatus;
use holdpoint_storage::RunHead;

/// The indexed columns of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of its lane.
    pub(crate) lane: i64,
    /// Its place in its session's order.
    pub(crate) turn: Option<i64>,
    pub(crate) status: RunStatus,
    /// Whether it may be claimed.
    pub(crate) is_ready: bool,
    /// When its timer comes.
    pub(crate) due_ms: Option<i64>,
    /// When it must end, while it has no owner.
    pub(crate) close_ms: Option<i64>,
    /// The newest epoch, which stands for the lease.
    pub(crate) epoch: u64,
}

/// The time from which a run without an owner must be ended; 0 when somebody wishes it.
pub(crate) fn close_ms(head: &RunHead) -> Option<i64> {
    match head.status() {
        RunStatus::Running | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
            None
        }
        RunStatus::Scheduled | RunStatus::Queued | RunStatus::Parked => {
            let wished = head.cancel.is_some().then_some(0);
            let expiry = head.expires_at_ms.filter(|_| head.started_at_ms.is_none());
            [wished, expiry, head.deadline_ms].into_iter().flatten().min()
        }
    }
}
