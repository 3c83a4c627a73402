//! What callers say to a store and what it answers. Plain data, the same for every backend.

use std::fmt;

use holdpoint_graph::{
    End, Fingerprint, GraphId, InterruptId, KeyId, Life, Pair, QueueId, ReasonCode, RequestId,
    RunId, RunStatus, SessionId, WorkerId, fingerprint::of_parts,
};
use serde::{Deserialize, Serialize};

/// What an acknowledgement reached. Nothing promises more than this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the store's memory or the system's cache: a power cut may lose it.
    Buffered,
    /// On the store's disk.
    Fsynced,
    /// On a replica's disk or memory too.
    Replicated,
}

impl Durability {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Fsynced => "fsynced",
            Self::Replicated => "replicated",
        }
    }
}

/// The ready queue of one (queue, graph, fingerprint or any).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The queue.
    pub queue: QueueId,
    /// The graph.
    pub graph: GraphId,
    /// The structure that the run is pinned to; none before its first claim.
    pub fingerprint: Option<Fingerprint>,
}

impl Lane {
    /// The lane's name in keys: 16 characters.
    #[must_use]
    pub fn name(&self) -> String {
        let fingerprint = self.fingerprint.as_ref().map_or("", Fingerprint::as_str);
        let mut name = of_parts(&["lane", self.queue.as_str(), self.graph.as_str(), fingerprint]);
        name.truncate(16);
        name
    }
}

/// A time, as a caller gives it: the store's clock decides what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many ms after the store's now.
    In(i64),
    /// At this time, in ms since 1970.
    At(i64),
}

impl When {
    /// The time, given the store's now.
    #[must_use]
    pub const fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::In(ms) => now_ms.saturating_add(ms),
            Self::At(ms) => ms,
        }
    }
}

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

/// Which question a signal answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// This opening of a question.
    Interrupt(InterruptId),
    /// The gate of this name, open or yet to open.
    Gate(String),
    /// The one question that is open.
    Only,
}

/// An answer to store.
#[derive(Debug, Clone)]
pub struct SignalRequest {
    /// The run.
    pub run: RunId,
    /// The call's id.
    pub request: RequestId,
    /// The question.
    pub address: Address,
    /// The hash of what the decision was made about, when the caller knows it.
    pub args_hash: Option<String>,
    /// The answer, opaque to the store.
    pub record: Vec<u8>,
}

/// What became of a signal. Nothing is consumed on a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalReply {
    /// It answers this open question. Also the reply to a repeat of the same request.
    Delivered {
        /// The question.
        interrupt: InterruptId,
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// The gate is not open; the answer is kept for its first opening.
    Kept {
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// No such run.
    NotFound,
    /// The run has ended.
    Final {
        /// How.
        status: RunStatus,
    },
    /// The interrupt is not open (never was, or was answered).
    NotOpen,
    /// No question is open.
    NoQuestion,
    /// Several questions fit.
    Ambiguous {
        /// Their ids.
        open: Vec<InterruptId>,
    },
    /// The question is about something else by now.
    ArgsChanged {
        /// The hash of that.
        args_hash: String,
    },
    /// Another answer was first and waits to be taken by the run.
    Decided {
        /// That answer's record.
        record: Vec<u8>,
    },
}

/// A signal that waits in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// `i` and an interrupt's id, or `g` and a gate's name.
    pub key: String,
    /// The record, as the signal brought it.
    pub record: Vec<u8>,
}

impl InboxEntry {
    /// The inbox key of an answer to an interrupt.
    #[must_use]
    pub fn of_interrupt(interrupt: &InterruptId) -> String {
        format!("i{interrupt}")
    }

    /// The inbox key of an answer that waits for a gate to open.
    #[must_use]
    pub fn of_gate(gate: &str) -> String {
        format!("g{gate}")
    }
}

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
    Edit,
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

/// A question that opens with a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedInterrupt {
    /// Its id.
    pub interrupt: InterruptId,
    /// The gate's name, for gates.
    pub gate: Option<String>,
    /// The hash of what it is about.
    pub args_hash: String,
    /// The question as it is shown: JSON, opaque to the store.
    pub body: Vec<u8>,
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
    /// The questions that open.
    pub opened: Vec<OpenedInterrupt>,
    /// The questions that close.
    pub closed: Vec<InterruptId>,
    /// Whether the run moved: it clears the counter of lost workers.
    pub is_progress: bool,
    /// The structure that the run is pinned to from now on.
    pub pin: Option<Fingerprint>,
    /// How long the lease is from now, in ms.
    pub lease_ms: i64,
    /// What becomes of the run.
    pub disposition: Disposition,
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
