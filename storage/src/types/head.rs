//! What a store knows of a run, and the lists it gives.

use holdpoint_graph::{
    Fingerprint, GraphId, InterruptId, Life, QueueId, ReasonCode, RunId, RunStatus, SessionId,
};

use crate::{ChainHash, Lane, Loss};

/// The cancel wish of a run that a worker has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelWish {
    /// Somebody asked for it.
    Asked,
    /// A newer run of the session takes its place; what it committed stays.
    Interrupted,
    /// A newer run of the session takes its place; the session forgets it.
    RolledBack,
}

impl CancelWish {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Interrupted => "interrupted",
            Self::RolledBack => "rolled_back",
        }
    }

    /// The wish of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Asked, Self::Interrupted, Self::RolledBack].into_iter().find(|w| w.as_str() == word)
    }
}

/// What a store knows of a run without reading its payload or journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// The run.
    pub run: RunId,
    /// Its graph.
    pub graph: GraphId,
    /// Its queue.
    pub queue: QueueId,
    /// Its session, when it has a named one.
    pub session: Option<SessionId>,
    /// The structure it is pinned to.
    pub fingerprint: Option<Fingerprint>,
    /// Its state.
    pub life: Life,
    /// 0 to 9.
    pub priority: u8,
    /// Its tags.
    pub tags: Vec<String>,
    /// The length of its journal.
    pub seq: u64,
    /// The hash of its journal.
    pub hash: ChainHash,
    /// The number of events that the newest snapshot covers; 0 without one.
    pub snapshot_seq: u64,
    /// The bytes of records since the newest snapshot.
    pub tail_bytes: u64,
    /// The newest epoch; kept when the lease ends.
    pub epoch: u64,
    /// How often it was claimed.
    pub claims: u64,
    /// Claims in a row without progress; raised by the claim itself.
    pub lost_in_row: u32,
    /// Lost workers over its life.
    pub lost_in_life: u32,
    /// The losses that the journal does not have yet, oldest first.
    pub losses: Vec<Loss>,
    /// Whether it is to be cancelled.
    pub cancel: Option<CancelWish>,
    /// The hash of its payload's meaning.
    pub payload_hash: String,
    /// When it was enqueued, in ms since 1970.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When it was first claimed.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub finished_at_ms: Option<i64>,
    /// When it must have started.
    pub expires_at_ms: Option<i64>,
    /// When it must have ended.
    pub deadline_ms: Option<i64>,
}

impl RunHead {
    /// The state as a word.
    #[must_use]
    pub const fn status(&self) -> RunStatus {
        self.life.status()
    }

    /// Why it failed.
    #[must_use]
    pub const fn reason(&self) -> Option<ReasonCode> {
        match &self.life {
            Life::Failed { reason } => Some(*reason),
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Running { .. }
            | Life::Parked { .. }
            | Life::Completed
            | Life::Cancelled => None,
        }
    }

    /// When it is due: the time of a scheduled run, or of a parked one's timer.
    #[must_use]
    pub const fn due_at_ms(&self) -> Option<i64> {
        match &self.life {
            Life::Scheduled { until_ms } => Some(*until_ms),
            Life::Parked { wake_at_ms } => *wake_at_ms,
            Life::Queued
            | Life::Running { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => None,
        }
    }

    /// The lane it waits in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        Lane {
            queue: self.queue.clone(),
            graph: self.graph.clone(),
            fingerprint: self.fingerprint.clone(),
        }
    }
}

/// A part of a run's journal.
#[derive(Debug, Clone)]
pub struct JournalPart {
    /// The head at the time of reading.
    pub head: RunHead,
    /// The newest snapshot, when it was asked for and there is one.
    pub snapshot: Option<Vec<u8>>,
    /// The number of the first record.
    pub from: u64,
    /// The records.
    pub records: Vec<Vec<u8>>,
}

/// Which runs a list shows: all conditions hold together; an empty one holds always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// One of these states.
    pub statuses: Vec<RunStatus>,
    /// Failed for this reason.
    pub reason: Option<ReasonCode>,
    /// Of this graph.
    pub graph: Option<GraphId>,
    /// Of this session.
    pub session: Option<SessionId>,
    /// Of this queue.
    pub queue: Option<QueueId>,
    /// With all of these tags.
    pub tags: Vec<String>,
}

impl RunFilter {
    /// Whether the run is shown.
    #[must_use]
    pub fn accepts(&self, head: &RunHead) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&head.status()))
            && self.reason.is_none_or(|reason| head.reason() == Some(reason))
            && self.graph.as_ref().is_none_or(|graph| *graph == head.graph)
            && self.session.as_ref().is_none_or(|session| head.session.as_ref() == Some(session))
            && self.queue.as_ref().is_none_or(|queue| *queue == head.queue)
            && self.tags.iter().all(|tag| head.tags.contains(tag))
    }
}

/// A place in a list: (time in ms, id). Lists are keyset-paged, so rows that move are neither
/// shown twice nor missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The time of the last row.
    pub at_ms: i64,
    /// The id of the last row.
    pub id: String,
}

/// One page of rows, and where the next begins; none when this was the last.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The rows. A page may be short, or empty, and still have a next one.
    pub rows: Vec<T>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}

/// An open question in a list.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    /// The run.
    pub head: RunHead,
    /// The question's id.
    pub interrupt: InterruptId,
    /// When it opened.
    pub opened_at_ms: i64,
    /// The question as it was stored.
    pub body: Vec<u8>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub session: SessionId,
    /// The graph it belongs to.
    pub graph: GraphId,
    /// The run that is active.
    pub active: Option<RunId>,
    /// The runs that wait behind it, in order.
    pub waiting: Vec<RunId>,
    /// The last run that ended and counts.
    pub last: Option<RunId>,
    /// How many runs it has.
    pub runs: u64,
}

/// A partial result in the order it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Its number within the run, from 1.
    pub n: u64,
    /// The length of the journal when it was sent.
    pub after: u64,
    /// The node, and the value: JSON, opaque to the store.
    pub body: Vec<u8>,
}
