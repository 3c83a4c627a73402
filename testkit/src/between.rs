//! A real store behind something that stands between it and its callers.
//!
//! It invents nothing: whatever stands there sees each call with its reply, and may hold it, keep
//! it from the store, or lose its reply. [`FaultyStore`](crate::FaultyStore) and
//! [`CrashStore`](crate::CrashStore) are made of this.

use std::{any::Any, fmt, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use holdpoint_graph::{GraphId, Namespace, QueueId, RunId, SessionId, WorkerId};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Claim, ClaimRequest, Claims, Commit, CommitReply,
    CommitRequest, Cursor, Damage, Enqueue, EnqueueReply, Finding, GraphRecord, InboxEntry,
    Inspect, JournalPart, Lane, Lease, Maintain, NewRun, OpenQuestion, Page, Partial,
    QuestionFilter, Renewal, Retention, RunFilter, RunHead, SessionRecord, SignalReply,
    SignalRequest, SignalsReply, Stats, Store, StoreResult, TickRequest, Ticked, WorkerRecord,
};

/// One call of a store.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The trait's method.
    pub name: &'static str,
    /// What it was asked, where that matters: of `commit` and `claim` the request, of `append` the
    /// kind, of all others nothing.
    pub request: &'a (dyn Any + Send + Sync),
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Stands between a store and its callers.
pub trait Middle: Send + Sync + 'static {
    /// Passes a call on, or does not: `work` is the call itself, which does nothing before it is
    /// awaited. `inner` is the store, to look at.
    fn pass<T: Send + Sync + 'static>(
        &self,
        inner: &dyn Store,
        call: Call<'_>,
        work: impl Future<Output = StoreResult<T>> + Send,
    ) -> impl Future<Output = StoreResult<T>> + Send;
}

/// A store with something between it and its callers.
pub struct Between<M> {
    inner: Arc<dyn Store>,
    pub(crate) middle: M,
}

impl<M> fmt::Debug for Between<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Between").field("inner", &self.inner.describe()).finish_non_exhaustive()
    }
}

impl<M: Middle> Between<M> {
    /// `inner` behind `middle`.
    pub(crate) fn of(inner: Arc<dyn Store>, middle: M) -> Self {
        Self { inner, middle }
    }

    async fn through<T: Send + Sync + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        self.through_with(name, &(), work).await
    }

    async fn through_with<T: Send + Sync + 'static>(
        &self,
        name: &'static str,
        request: &(dyn Any + Send + Sync),
        work: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        self.middle.pass(&*self.inner, Call { name, request }, work).await
    }
}

#[async_trait]
impl<M: Middle> Enqueue for Between<M> {
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply> {
        self.through("enqueue", self.inner.enqueue(items, partial)).await
    }
    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply> {
        self.through("signal", self.inner.signal(request)).await
    }
    async fn signal_all(&self, requests: &[SignalRequest]) -> StoreResult<SignalsReply> {
        self.through("signal_all", self.inner.signal_all(requests)).await
    }
    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply> {
        self.through_with("append", kind, self.inner.append(request, kind)).await
    }
    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>> {
        self.through("start_now", self.inner.start_now(run)).await
    }
}

#[async_trait]
impl<M: Middle> Claim for Between<M> {
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims> {
        self.through_with("claim", request, self.inner.claim(request)).await
    }
    async fn renew(&self, leases: &[Lease], lease_ms: i64) -> StoreResult<Vec<Renewal>> {
        self.through("renew", self.inner.renew(leases, lease_ms)).await
    }
    async fn release(&self, lease: &Lease) -> StoreResult<bool> {
        self.through("release", self.inner.release(lease)).await
    }
    async fn wait(&self, lanes: &[Lane], patience: Duration) {
        self.inner.wait(lanes, patience).await;
    }
}

#[async_trait]
impl<M: Middle> Commit for Between<M> {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        self.through_with("commit", request, self.inner.commit(request)).await
    }
    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<InboxEntry>> {
        self.through("inbox", self.inner.inbox(run)).await
    }
    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()> {
        self.through("partial", self.inner.partial(run, after, body)).await
    }
}

#[async_trait]
impl<M: Middle> Inspect for Between<M> {
    async fn now_ms(&self) -> StoreResult<i64> {
        self.through("now_ms", self.inner.now_ms()).await
    }
    async fn head(&self, run: &RunId) -> StoreResult<Option<RunHead>> {
        self.through("head", self.inner.head(run)).await
    }
    async fn payload(&self, run: &RunId) -> StoreResult<Option<Vec<u8>>> {
        self.through("payload", self.inner.payload(run)).await
    }
    async fn journal(
        &self,
        run: &RunId,
        from: u64,
        max: usize,
    ) -> StoreResult<Option<JournalPart>> {
        self.through("journal", self.inner.journal(run, from, max)).await
    }
    async fn checkpoint(&self, run: &RunId) -> StoreResult<Option<JournalPart>> {
        self.through("checkpoint", self.inner.checkpoint(run)).await
    }
    async fn runs(
        &self,
        filter: &RunFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>> {
        self.through("runs", self.inner.runs(filter, after, limit)).await
    }
    async fn questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        self.through("questions", self.inner.questions(filter, after, limit)).await
    }
    async fn session(&self, session: &SessionId) -> StoreResult<Option<SessionRecord>> {
        self.through("session", self.inner.session(session)).await
    }
    async fn sessions(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<SessionRecord>> {
        self.through("sessions", self.inner.sessions(after, limit)).await
    }
    async fn stats(&self) -> StoreResult<Stats> {
        self.through("stats", self.inner.stats()).await
    }
    async fn workers(&self) -> StoreResult<Vec<WorkerRecord>> {
        self.through("workers", self.inner.workers()).await
    }
    async fn graphs(&self) -> StoreResult<Vec<GraphRecord>> {
        self.through("graphs", self.inner.graphs()).await
    }
    async fn partials(&self, run: &RunId, after: u64) -> StoreResult<Vec<Partial>> {
        self.through("partials", self.inner.partials(run, after)).await
    }
    async fn changed(&self, run: &RunId, patience: Duration) {
        self.inner.changed(run, patience).await;
    }
    async fn check(&self) -> StoreResult<Vec<Finding>> {
        self.through("check", self.inner.check()).await
    }
}

#[async_trait]
impl<M: Middle> Maintain for Between<M> {
    async fn beat(&self, record: &WorkerRecord) -> StoreResult<()> {
        self.through("beat", self.inner.beat(record)).await
    }
    async fn lost(
        &self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
    ) -> StoreResult<Vec<RunId>> {
        self.through("lost", self.inner.lost(worker, evidence, loss_delays_ms)).await
    }
    async fn leave(&self, worker: &WorkerId) -> StoreResult<()> {
        self.through("leave", self.inner.leave(worker)).await
    }
    async fn tick(&self, request: &TickRequest) -> StoreResult<Ticked> {
        self.through("tick", self.inner.tick(request)).await
    }
    async fn prune(&self, retention: Retention, max: usize) -> StoreResult<usize> {
        self.through("prune", self.inner.prune(retention, max)).await
    }
    async fn publish(&self, record: &GraphRecord) -> StoreResult<()> {
        self.through("publish", self.inner.publish(record)).await
    }
    async fn pause(&self, queue: &QueueId, paused: bool) -> StoreResult<()> {
        self.through("pause", self.inner.pause(queue, paused)).await
    }
    async fn delete_session(&self, session: &SessionId) -> StoreResult<Option<bool>> {
        self.through("delete_session", self.inner.delete_session(session)).await
    }
    async fn pinned(&self, graph: &GraphId, after: Option<&Cursor>) -> StoreResult<Page<RunHead>> {
        self.through("pinned", self.inner.pinned(graph, after)).await
    }
    async fn faults(&self) -> StoreResult<Vec<Damage>> {
        self.through("faults", self.inner.faults()).await
    }
    async fn repair(&self, faults: &[Damage]) -> StoreResult<Vec<bool>> {
        self.through("repair", self.inner.repair(faults)).await
    }
}

impl<M: Middle> Store for Between<M> {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn namespace(&self) -> &Namespace {
        self.inner.namespace()
    }
}
