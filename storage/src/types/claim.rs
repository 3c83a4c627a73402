//! Claims, leases and renewals.

use holdpoint_graph::{Pair, RunId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::{InboxEntry, Lane, RunHead};

/// A worker's hold on a run: what only the owner may do takes one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The fencing pair.
    pub pair: Pair,
    /// The worker.
    pub worker: WorkerId,
}

/// A request for runs.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The worker.
    pub worker: WorkerId,
    /// New with every claim; a repeat of the same one answers the same runs.
    pub nonce: String,
    /// The lanes it can serve.
    pub lanes: Vec<Lane>,
    /// How many at most.
    pub max: usize,
    /// How long a lease is, in ms.
    pub lease_ms: i64,
    /// Whether the oldest goes first, whatever its priority.
    pub oldest_first: bool,
    /// The bytes after which no further run is added to the reply.
    pub bytes_max: usize,
}

/// A claim that ended in a lost worker and is not in the journal yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The worker.
    pub worker: WorkerId,
    /// Its epoch.
    pub epoch: u64,
    /// When it had claimed the run.
    pub claimed_at_ms: i64,
    /// When it was found lost.
    pub lost_at_ms: i64,
    /// How that was seen.
    pub evidence: String,
}

/// A claimed run with all that is needed to go on.
#[derive(Debug, Clone)]
pub struct ClaimedRun {
    /// The head of the run, after the claim.
    pub head: RunHead,
    /// The lease.
    pub lease: Lease,
    /// The envelope.
    pub payload: Vec<u8>,
    /// The newest snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// The records from the snapshot's number on (from 0 without one).
    pub journal: Vec<Vec<u8>>,
    /// The answers that wait.
    pub inbox: Vec<InboxEntry>,
    /// The session's last finished run, whose state this one starts from.
    pub session_last: Option<RunId>,
    /// What the store found damaged in all this, and left out: the owner can only end the run, as
    /// one that cannot be read.
    pub damage: Option<String>,
}

/// The reply to a claim.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// The store's time.
    pub now_ms: i64,
    /// The runs.
    pub runs: Vec<ClaimedRun>,
    /// When the next scheduled run is due, when nothing was claimed.
    pub next_due_ms: Option<i64>,
}

/// The reply to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewal {
    /// The lease goes on.
    Kept {
        /// Whether the run is to be cancelled.
        cancel: bool,
        /// Whether answers wait in its inbox.
        has_inbox: bool,
    },
    /// The lease is no longer the caller's.
    Fenced,
}
