//! Events that somebody who is not the owner appends.

use holdpoint_graph::{Fingerprint, RequestId, RunId, RunStatus};

use crate::{Durability, OpenedInterrupt};

/// The hash of a journal up to one event: 16 bytes as 32 hexadecimal digits; of an empty journal
/// the empty text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainHash(pub String);

/// One event to append, and what it follows. Made by whoever is not an owner.
#[derive(Debug, Clone)]
pub struct AppendRequest {
    /// The run.
    pub run: RunId,
    /// The call's id.
    pub request: RequestId,
    /// The number of the event: the length of the journal before it.
    pub from: u64,
    /// The hash of the journal before it.
    pub previous: ChainHash,
    /// The encoded record.
    pub record: Vec<u8>,
    /// The hash of the journal with it.
    pub hash: ChainHash,
}

/// What an append by somebody who is not the owner does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendKind {
    /// The run is cancelled. `rollback`: the session forgets it.
    Cancel {
        /// Whether the session forgets the run.
        rollback: bool,
    },
    /// The state of a parked run is edited.
    Edit {
        /// The open questions that are about something else now; others are left out.
        shown: Vec<OpenedInterrupt>,
    },
    /// A failed run goes on: its counters of lost workers start anew.
    Redrive,
    /// A queued, scheduled or parked run is pinned to another structure.
    Migrate {
        /// The structure it must be pinned to now.
        from: Fingerprint,
        /// The structure it is pinned to afterwards.
        to: Fingerprint,
    },
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendReply {
    /// Written. Also the reply to a repeat of the same request.
    Done {
        /// The run's state afterwards.
        status: RunStatus,
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// The run is with a worker, which is told and will end it (only for a cancel).
    Cancelling,
    /// The journal has another length by now: read again and repeat.
    Moved,
    /// The run's state does not allow it.
    WrongState {
        /// The state.
        status: RunStatus,
    },
    /// No such run.
    NotFound,
}
