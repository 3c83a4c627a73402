//! Runs and answers on their way in.

use holdpoint_graph::{
    Fingerprint, GraphId, InterruptId, KeyId, QueueId, RequestId, RunId, RunStatus, SessionId,
};
use serde::{Deserialize, Serialize};

use crate::{Durability, Lane, When};

/// What happens when a session's run is still active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// The new run waits its turn.
    #[default]
    Enqueue,
    /// The new run is refused.
    Reject,
    /// The active run is cancelled; what it committed stays.
    Interrupt,
    /// The active run is cancelled and its events count for nothing in the session.
    Rollback,
}

/// A run to store.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run: RunId,
    /// The call's id, the same when it is repeated.
    pub request: RequestId,
    /// The graph.
    pub graph: GraphId,
    /// The structure it is pinned to, when it goes on from another run's checkpoint.
    pub fingerprint: Option<Fingerprint>,
    /// The queue.
    pub queue: QueueId,
    /// The session, when it has a named one.
    pub session: Option<SessionId>,
    /// What to do when the session is busy.
    pub if_busy: IfBusy,
    /// The envelope, opaque to the store.
    pub payload: Vec<u8>,
    /// The hash of what the envelope means; equal for equal work. 26 characters.
    pub payload_hash: String,
    /// 0 to 9, higher first.
    pub priority: u8,
    /// When it may start.
    pub start: When,
    /// When it must have started.
    pub expires: Option<When>,
    /// When it must have ended.
    pub deadline: Option<When>,
    /// The idempotency key.
    pub key: Option<KeyId>,
    /// Tags, `key=value`.
    pub tags: Vec<String>,
    /// The most runs that may wait in the queue.
    pub queue_depth_max: u64,
}

impl NewRun {
    /// The lane it starts in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        Lane {
            queue: self.queue.clone(),
            graph: self.graph.clone(),
            fingerprint: self.fingerprint.clone(),
        }
    }
}

/// The answer to one item of an enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// Stored.
    Created {
        /// The run.
        run: RunId,
        /// Scheduled or queued.
        status: RunStatus,
    },
    /// The same request was stored before.
    Repeated {
        /// The run.
        run: RunId,
        /// Its state now.
        status: RunStatus,
    },
    /// The idempotency key names a run with the same payload.
    Existing {
        /// That run.
        run: RunId,
        /// Its state now.
        status: RunStatus,
    },
    /// The idempotency key names a run with another payload.
    KeyConflict {
        /// That run.
        run: RunId,
    },
    /// The run id is taken by another request.
    RunExists,
    /// The session has an active run and the caller would not wait.
    SessionBusy {
        /// The active run.
        run: RunId,
        /// Its open question, when it is parked at one.
        question: Option<InterruptId>,
    },
    /// The session belongs to another graph.
    SessionGraph {
        /// That graph.
        graph: GraphId,
    },
    /// The queue is at its depth.
    QueueFull {
        /// How many wait.
        depth: u64,
    },
}

impl Enqueued {
    /// Whether nothing was stored for the item because it was refused.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        match self {
            Self::Created { .. } | Self::Repeated { .. } | Self::Existing { .. } => false,
            Self::KeyConflict { .. }
            | Self::RunExists
            | Self::SessionBusy { .. }
            | Self::SessionGraph { .. }
            | Self::QueueFull { .. } => true,
        }
    }
}

/// The answers to an enqueue, item by item, and the level they reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueueReply {
    /// One answer for each item. Unless `partial` was asked for, either none is refused or
    /// nothing was stored (then the others say what they would have been).
    pub items: Vec<Enqueued>,
    /// The level of the acknowledgement.
    pub durability: Durability,
}
