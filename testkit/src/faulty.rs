//! A real store behind a plan of faults: calls that fail, replies that are lost, calls that hang.
//!
//! It invents nothing: every call either reaches the store behind it or does not.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use holdpoint_graph::{GraphId, Namespace, QueueId, RequestId, RunId, SessionId, WorkerId};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Claim, ClaimRequest, Claims, Commit, CommitReply,
    CommitRequest, Cursor, Damage, Enqueue, EnqueueReply, Finding, GraphRecord, InboxEntry,
    Inspect, JournalPart, Lane, Lease, Maintain, NewRun, OpenQuestion, Page, Partial, Renewal,
    Retention, RunFilter, RunHead, SessionRecord, SignalReply, SignalRequest, Stats, Store,
    StoreError, StoreResult, TickRequest, Ticked, WorkerRecord,
};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call goes through.
    Pass,
    /// The store does not get it: it is not available.
    Refuse,
    /// The store does it, and the reply is lost.
    LoseReply,
    /// The store does not get it, and there never is a reply.
    HangBefore,
    /// The store does it, and there never is a reply.
    HangAfter,
}

/// Decides the fault of a call by its name (the trait's method) and its number among those of
/// that name, from 1.
pub type Plan = Box<dyn FnMut(&'static str, u64) -> Fault + Send>;

/// A store with a plan of faults.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    counts: Counts,
    done: Counts,
}

type Counts = Mutex<BTreeMap<&'static str, u64>>;

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner.describe()).finish_non_exhaustive()
    }
}

impl FaultyStore {
    /// `inner` behind `plan`.
    pub fn new(
        inner: Arc<dyn Store>,
        plan: impl FnMut(&'static str, u64) -> Fault + Send + 'static,
    ) -> Self {
        Self {
            inner,
            plan: Mutex::new(Box::new(plan)),
            counts: Mutex::default(),
            done: Mutex::default(),
        }
    }

    /// Replaces the plan.
    pub fn set_plan(&self, plan: impl FnMut(&'static str, u64) -> Fault + Send + 'static) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(plan);
    }

    /// How often a method was called.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(name).copied().unwrap_or(0)
    }

    /// How many calls of a method the store behind has answered.
    #[must_use]
    pub fn done(&self, name: &str) -> u64 {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(name).copied().unwrap_or(0)
    }

    fn fault(&self, name: &'static str) -> Fault {
        let number = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(name).or_insert(0);
            *count += 1;
            *count
        };
        (self.plan.lock().unwrap_or_else(PoisonError::into_inner))(name, number)
    }

    async fn through<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let fault = self.fault(name);
        let call = async {
            let reply = call.await;
            *self.done.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_insert(0) += 1;
            reply
        };
        match fault {
            Fault::Pass => call.await,
            Fault::Refuse => {
                Err(StoreError::Unavailable { cause: format!("the plan refuses {name}") })
            }
            Fault::HangBefore => std::future::pending().await,
            Fault::LoseReply => {
                call.await?;
                let request = RequestId::new("lost-reply")?;
                let cause = format!("the plan lost the reply of {name}");
                Err(StoreError::UnknownOutcome { request, cause })
            }
            Fault::HangAfter => {
                call.await?;
                std::future::pending().await
            }
        }
    }
}

#[async_trait]
impl Enqueue for FaultyStore {
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply> {
        self.through("enqueue", self.inner.enqueue(items, partial)).await
    }
    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply> {
        self.through("signal", self.inner.signal(request)).await
    }
    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply> {
        self.through("append", self.inner.append(request, kind)).await
    }
    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>> {
        self.through("start_now", self.inner.start_now(run)).await
    }
}

#[async_trait]
impl Claim for FaultyStore {
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims> {
        self.through("claim", self.inner.claim(request)).await
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
impl Commit for FaultyStore {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        self.through("commit", self.inner.commit(request)).await
    }
    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<InboxEntry>> {
        self.through("inbox", self.inner.inbox(run)).await
    }
    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()> {
        self.through("partial", self.inner.partial(run, after, body)).await
    }
}

#[async_trait]
impl Inspect for FaultyStore {
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
        run: Option<&RunId>,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        self.through("questions", self.inner.questions(run, after, limit)).await
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
impl Maintain for FaultyStore {
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

impl Store for FaultyStore {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn namespace(&self) -> &Namespace {
        self.inner.namespace()
    }
}
