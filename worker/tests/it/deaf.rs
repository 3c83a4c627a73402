//! A real store through which no renewal comes: a worker behind it is a zombie.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_graph::{GraphId, Namespace, QueueId, RunId, SessionId, WorkerId};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Claim, ClaimRequest, Claims, Commit, CommitReply,
    CommitRequest, Cursor, Damage, Enqueue, EnqueueReply, Finding, GraphRecord, InboxEntry,
    Inspect, JournalPart, Lane, Lease, Maintain, NewRun, OpenQuestion, Page, Partial,
    QuestionFilter, Renewal, Retention, RunFilter, RunHead, SessionRecord, SignalReply,
    SignalRequest, SignalsReply, Stats, Store, StoreResult, TickRequest, Ticked, WorkerRecord,
};
use std::sync::Arc;

/// Hangs in every renewal, and passes everything else on.
pub(crate) struct Deaf(pub(crate) Arc<dyn Store>);

#[async_trait]
impl Enqueue for Deaf {
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply> {
        self.0.enqueue(items, partial).await
    }
    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply> {
        self.0.signal(request).await
    }
    async fn signal_all(&self, requests: &[SignalRequest]) -> StoreResult<SignalsReply> {
        self.0.signal_all(requests).await
    }
    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply> {
        self.0.append(request, kind).await
    }
    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>> {
        self.0.start_now(run).await
    }
}

#[async_trait]
impl Claim for Deaf {
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims> {
        self.0.claim(request).await
    }
    async fn renew(&self, _: &[Lease], _: i64) -> StoreResult<Vec<Renewal>> {
        std::future::pending().await
    }
    async fn release(&self, lease: &Lease) -> StoreResult<bool> {
        self.0.release(lease).await
    }
    async fn wait(&self, lanes: &[Lane], patience: Duration) {
        self.0.wait(lanes, patience).await;
    }
}

#[async_trait]
impl Commit for Deaf {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        self.0.commit(request).await
    }
    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<InboxEntry>> {
        self.0.inbox(run).await
    }
    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()> {
        self.0.partial(run, after, body).await
    }
}

#[async_trait]
impl Inspect for Deaf {
    async fn now_ms(&self) -> StoreResult<i64> {
        self.0.now_ms().await
    }
    async fn head(&self, run: &RunId) -> StoreResult<Option<RunHead>> {
        self.0.head(run).await
    }
    async fn payload(&self, run: &RunId) -> StoreResult<Option<Vec<u8>>> {
        self.0.payload(run).await
    }
    async fn journal(
        &self,
        run: &RunId,
        from: u64,
        max: usize,
    ) -> StoreResult<Option<JournalPart>> {
        self.0.journal(run, from, max).await
    }
    async fn checkpoint(&self, run: &RunId) -> StoreResult<Option<JournalPart>> {
        self.0.checkpoint(run).await
    }
    async fn runs(
        &self,
        filter: &RunFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>> {
        self.0.runs(filter, after, limit).await
    }
    async fn questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        self.0.questions(filter, after, limit).await
    }
    async fn session(&self, session: &SessionId) -> StoreResult<Option<SessionRecord>> {
        self.0.session(session).await
    }
    async fn sessions(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<SessionRecord>> {
        self.0.sessions(after, limit).await
    }
    async fn stats(&self) -> StoreResult<Stats> {
        self.0.stats().await
    }
    async fn workers(&self) -> StoreResult<Vec<WorkerRecord>> {
        self.0.workers().await
    }
    async fn graphs(&self) -> StoreResult<Vec<GraphRecord>> {
        self.0.graphs().await
    }
    async fn partials(&self, run: &RunId, after: u64) -> StoreResult<Vec<Partial>> {
        self.0.partials(run, after).await
    }
    async fn changed(&self, run: &RunId, patience: Duration) {
        self.0.changed(run, patience).await;
    }
    async fn check(&self) -> StoreResult<Vec<Finding>> {
        self.0.check().await
    }
}

#[async_trait]
impl Maintain for Deaf {
    async fn beat(&self, record: &WorkerRecord) -> StoreResult<()> {
        self.0.beat(record).await
    }
    async fn lost(
        &self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
    ) -> StoreResult<Vec<RunId>> {
        self.0.lost(worker, evidence, loss_delays_ms).await
    }
    async fn leave(&self, worker: &WorkerId) -> StoreResult<()> {
        self.0.leave(worker).await
    }
    async fn tick(&self, request: &TickRequest) -> StoreResult<Ticked> {
        self.0.tick(request).await
    }
    async fn prune(&self, retention: Retention, max: usize) -> StoreResult<usize> {
        self.0.prune(retention, max).await
    }
    async fn publish(&self, record: &GraphRecord) -> StoreResult<()> {
        self.0.publish(record).await
    }
    async fn pause(&self, queue: &QueueId, paused: bool) -> StoreResult<()> {
        self.0.pause(queue, paused).await
    }
    async fn delete_session(&self, session: &SessionId) -> StoreResult<Option<bool>> {
        self.0.delete_session(session).await
    }
    async fn pinned(&self, graph: &GraphId, after: Option<&Cursor>) -> StoreResult<Page<RunHead>> {
        self.0.pinned(graph, after).await
    }

    async fn faults(&self) -> StoreResult<Vec<Damage>> {
        self.0.faults().await
    }

    async fn repair(&self, faults: &[Damage]) -> StoreResult<Vec<bool>> {
        self.0.repair(faults).await
    }
}

impl Store for Deaf {
    fn describe(&self) -> String {
        format!("{}, deaf", self.0.describe())
    }
    fn namespace(&self) -> &Namespace {
        self.0.namespace()
    }
}
