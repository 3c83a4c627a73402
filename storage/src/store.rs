//! The five faces of a store, one for each kind of caller.
//!
//! A store decides nothing: each call is one atomic transition, and policy comes in as numbers.
//! Every mutating call carries a request id (or has a natural key) and may be repeated after an
//! unknown outcome with one effect. All calls are cancel-safe in this sense: a future that is
//! dropped leaves either nothing or the whole effect.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_graph::{GraphId, Namespace, QueueId, RunId, SessionId, WorkerId};

use crate::{
    AppendKind, AppendReply, AppendRequest, ClaimRequest, Claims, CommitReply, CommitRequest,
    Cursor, Damage, EnqueueReply, Finding, GraphRecord, JournalPart, Lane, Lease, NewRun,
    OpenQuestion, Page, Partial, QuestionFilter, Renewal, Retention, RunFilter, RunHead,
    SessionRecord, SignalReply, SignalRequest, SignalsReply, Stats, StoreError, TickRequest,
    Ticked, WorkerRecord,
};

/// The result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// For whoever brings work and answers.
#[async_trait]
pub trait Enqueue: Send + Sync {
    /// Stores runs. Unless `partial`, one refused item means that nothing is stored.
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply>;
    /// Stores an answer.
    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply>;
    /// Stores answers for the run of the first one, all of them or none. Each sees those before
    /// it as if they were stored; without any request there is nothing to do.
    async fn signal_all(&self, requests: &[SignalRequest]) -> StoreResult<SignalsReply>;
    /// Appends an event to a run that nobody has, with what it does to the run.
    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply>;
    /// Makes a scheduled run due. False: it is not scheduled. None: there is no such run.
    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>>;
}

/// For workers.
#[async_trait]
pub trait Claim: Send + Sync {
    /// Takes runs from lanes; due timers of the namespace are fired first.
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims>;
    /// Keeps leases for `lease_ms` from now; the answers are in the order of the leases.
    async fn renew(&self, leases: &[Lease], lease_ms: i64) -> StoreResult<Vec<Renewal>>;
    /// Hands a run back, claimable now; the claim does not count. False: fenced.
    async fn release(&self, lease: &Lease) -> StoreResult<bool>;
    /// Returns when a run may have come to one of the lanes, or after `patience`.
    async fn wait(&self, lanes: &[Lane], patience: Duration);
}

/// For the owner of a run.
#[async_trait]
pub trait Commit: Send + Sync {
    /// Writes events and what becomes of the run.
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply>;
    /// The answers that wait for the run.
    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<crate::InboxEntry>>;
    /// Sends a partial result; may be dropped.
    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()>;
}

/// For whoever looks.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// The store's time, in ms since 1970.
    async fn now_ms(&self) -> StoreResult<i64>;
    /// The head of a run.
    async fn head(&self, run: &RunId) -> StoreResult<Option<RunHead>>;
    /// The envelope of a run.
    async fn payload(&self, run: &RunId) -> StoreResult<Option<Vec<u8>>>;
    /// Records from `from` on, at most `max`; consistent with the head beside them.
    async fn journal(&self, run: &RunId, from: u64, max: usize)
    -> StoreResult<Option<JournalPart>>;
    /// The newest snapshot and the records after it (from 0 without one).
    async fn checkpoint(&self, run: &RunId) -> StoreResult<Option<JournalPart>>;
    /// Runs, newest first.
    async fn runs(
        &self,
        filter: &RunFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>>;
    /// Open questions that a filter shows, in its order. Walks the shortest list that has them
    /// all and looks at a bounded number of rows, so a page may be short and still have a next
    /// one. A cursor of another order is refused with `E_CURSOR`.
    async fn questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>>;
    /// A session.
    async fn session(&self, session: &SessionId) -> StoreResult<Option<SessionRecord>>;
    /// Sessions by id.
    async fn sessions(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<SessionRecord>>;
    /// Counts.
    async fn stats(&self) -> StoreResult<Stats>;
    /// The workers that are known.
    async fn workers(&self) -> StoreResult<Vec<WorkerRecord>>;
    /// The graphs that were published.
    async fn graphs(&self) -> StoreResult<Vec<GraphRecord>>;
    /// Partial results after number `after`.
    async fn partials(&self, run: &RunId, after: u64) -> StoreResult<Vec<Partial>>;
    /// Returns when the run may have changed since its journal had `seq` events and its state was
    /// `status`, or after `patience`.
    async fn changed(&self, run: &RunId, patience: Duration);
    /// Checks settings, indexes and records.
    async fn check(&self) -> StoreResult<Vec<Finding>>;
}

/// For the upkeep that every worker does, and for operators.
#[async_trait]
pub trait Maintain: Send + Sync {
    /// A worker's sign of life.
    async fn beat(&self, record: &WorkerRecord) -> StoreResult<()>;
    /// A worker is gone, by the word of who saw it: its runs are claimable again.
    async fn lost(
        &self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
    ) -> StoreResult<Vec<RunId>>;
    /// A worker ended in order; it is taken off the list.
    async fn leave(&self, worker: &WorkerId) -> StoreResult<()>;
    /// Reaps, fires timers, and claims what must end.
    async fn tick(&self, request: &TickRequest) -> StoreResult<Ticked>;
    /// Deletes ended runs that are old enough, at most `max`; never the last of a session.
    async fn prune(&self, retention: Retention, max: usize) -> StoreResult<usize>;
    /// Publishes a graph.
    async fn publish(&self, record: &GraphRecord) -> StoreResult<()>;
    /// Pauses or resumes a queue.
    async fn pause(&self, queue: &QueueId, paused: bool) -> StoreResult<()>;
    /// Deletes a session and its runs. False: a run of it is active.
    async fn delete_session(&self, session: &SessionId) -> StoreResult<Option<bool>>;
    /// Runs of a graph that are pinned to a structure and have not ended: for `graphs check`.
    async fn pinned(&self, graph: &GraphId, after: Option<&Cursor>) -> StoreResult<Page<RunHead>>;
    /// Finds what in the store contradicts itself, with what would mend it; writes nothing. Some
    /// damage hides more, so a repair is followed by another look.
    async fn faults(&self) -> StoreResult<Vec<Damage>>;
    /// Mends what was found. Each answer, in the order of the faults, tells whether the fault was
    /// still as it had been found; if not, nothing was done about it.
    async fn repair(&self, faults: &[Damage]) -> StoreResult<Vec<bool>>;
}

/// A whole store.
pub trait Store: Enqueue + Claim + Commit + Inspect + Maintain {
    /// What the store is, for people: the kind and the place, without secrets.
    fn describe(&self) -> String;

    /// The namespace that every call of this handle is about.
    fn namespace(&self) -> &Namespace;
}
