//! The owner's writes.

use holdpoint_graph::{Ballot, End, Fingerprint, Interrupt, InterruptId, RequestId, RunStatus};

use crate::{ChainHash, Durability, InboxEntry, Lease};

/// A question that opens, or that is open and is shown anew: it keeps the time of its opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedInterrupt {
    /// Its id.
    pub interrupt: InterruptId,
    /// The gate's name, for gates.
    pub gate: Option<String>,
    /// The hash of what it is about.
    pub args_hash: String,
    /// When it is answered by itself, in ms since 1970.
    pub deadline_ms: Option<i64>,
    /// The people who are asked; everybody when there are neither people nor groups.
    pub assignees: Vec<String>,
    /// The groups that are asked.
    pub groups: Vec<String>,
    /// The votes that the question has: which votes of its inbox count no more.
    pub votes: Vec<Vote>,
    /// The question as it is shown: JSON, opaque to the store.
    pub body: Vec<u8>,
}

impl OpenedInterrupt {
    /// The stored form of an open question.
    ///
    /// # Panics
    /// Never: a question always has a text.
    #[must_use]
    pub fn of(open: &Interrupt) -> Self {
        let vote = |vote| {
            let Ballot { voter, choice, .. } = open.ballot(vote)?;
            Some(Vote { choice, voter })
        };
        Self {
            interrupt: open.interrupt.clone(),
            gate: open.gate.clone(),
            args_hash: open.args_hash.clone(),
            deadline_ms: open.deadline_ms,
            assignees: open.assignees.clone(),
            groups: open.groups.clone(),
            votes: open.votes.iter().filter_map(vote).collect(),
            body: serde_json::to_vec(open).expect("a question always has a text"),
        }
    }
}

/// A vote that was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// What for: a word without blanks and bars.
    pub choice: String,
    /// Who voted: likewise.
    pub voter: String,
}

/// What a commit does with the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The owner goes on.
    Continue,
    /// The run parks, unless its inbox already answers an open question.
    Park {
        /// When it wakes by itself, in ms since 1970.
        wake_at_ms: Option<i64>,
    },
    /// The run waits for a time.
    Reschedule {
        /// Until when, in ms since 1970.
        until_ms: i64,
    },
    /// The run ends.
    Finish {
        /// How.
        end: End,
    },
}

/// The owner's write: events and what becomes of the run, in one atomic step.
#[derive(Debug, Clone)]
pub struct CommitRequest {
    /// The lease.
    pub lease: Lease,
    /// The call's id.
    pub request: RequestId,
    /// The length of the journal before the events.
    pub from: u64,
    /// The hash of the journal before them.
    pub previous: ChainHash,
    /// The encoded records; may be empty.
    pub records: Vec<Vec<u8>>,
    /// The hash of the journal with them.
    pub hash: ChainHash,
    /// A snapshot after the last record.
    pub snapshot: Option<Vec<u8>>,
    /// The inbox keys whose answers the records hold.
    pub consumed: Vec<String>,
    /// The questions that open or are shown anew.
    pub opened: Vec<OpenedInterrupt>,
    /// The questions that close.
    pub closed: Vec<InterruptId>,
    /// Whether the run moved: it clears the counter of lost workers.
    pub is_progress: bool,
    /// The structure that the run is pinned to from now on.
    pub pin: Option<Fingerprint>,
    /// How long the lease is from now, in ms; 0 leaves it as it is, which costs less.
    pub lease_ms: i64,
    /// What becomes of the run.
    pub disposition: Disposition,
}

impl CommitRequest {
    /// The end of the lease after a commit that goes on, in ms since 1970. `end_ms`: before it.
    #[must_use]
    pub const fn lease_end_ms(&self, end_ms: i64, now_ms: i64) -> i64 {
        if self.lease_ms == 0 { end_ms } else { now_ms.saturating_add(self.lease_ms) }
    }
}

/// The reply to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitReply {
    /// Written. Also the reply to a repeat of the same request.
    Done {
        /// The store's time.
        now_ms: i64,
        /// The run's state afterwards.
        status: RunStatus,
        /// Answers that wait; when the commit was to park and one of them answers an open
        /// question, the run was not parked and `status` is running.
        inbox: Vec<InboxEntry>,
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// The lease is no longer the caller's; nothing was written.
    Fenced,
    /// The journal has another length or hash than the caller thinks; nothing was written.
    Sequence {
        /// Its length.
        seq: u64,
    },
    /// The run is to be cancelled: only a commit that ends it as cancelled is taken.
    Cancelled,
}
