//! The five faces of the store: each call clones what it was given and runs one operation.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_graph::{GraphId, Namespace, QueueId, RequestId, RunId, SessionId, WorkerId};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Claim, ClaimRequest, Claims, Commit, CommitReply,
    CommitRequest, Cursor, Damage, Enqueue, EnqueueReply, Finding, GraphRecord, InboxEntry,
    Inspect, JournalPart, Lane, Lease, Maintain, NewRun, OpenQuestion, Page, Partial,
    QuestionFilter, Renewal, Retention, RunFilter, RunHead, SessionRecord, SignalReply,
    SignalRequest, SignalsReply, Stats, Store, StoreResult, TickRequest, Ticked, WorkerRecord,
};

use crate::{
    ops::{append, claim, commit, enqueue, lease, prune, registry, repair, signal, tick},
    questions,
    read::{self, check, lists, runs, sessions},
    store::SqliteStore,
};

#[async_trait]
impl Enqueue for SqliteStore {
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply> {
        let request: Option<RequestId> = items.first().map(|item| item.request.clone());
        let items = items.to_vec();
        let work = move |tx: &mut crate::tx::Tx<'_>| enqueue::enqueue(tx, &items, partial);
        match request {
            Some(request) => self.request(&request, work).await,
            None => self.write(work).await,
        }
    }

    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply> {
        let owned = request.clone();
        self.request(&request.request, move |tx| signal::signal(tx, &owned)).await
    }

    async fn signal_all(&self, requests: &[SignalRequest]) -> StoreResult<SignalsReply> {
        let Some(first) = requests.first() else { return Ok(SignalsReply::Taken(Vec::new())) };
        let owned = requests.to_vec();
        self.request(&first.request, move |tx| signal::signal_all(tx, &owned)).await
    }

    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply> {
        let (owned, kind) = (request.clone(), kind.clone());
        self.request(&request.request, move |tx| append::append(tx, &owned, &kind)).await
    }

    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>> {
        let run = run.clone();
        self.write(move |tx| enqueue::start_now(tx, &run)).await
    }
}

#[async_trait]
impl Claim for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims> {
        let request = request.clone();
        self.write(move |tx| claim::claim(tx, &request)).await
    }

    async fn renew(&self, leases: &[Lease], lease_ms: i64) -> StoreResult<Vec<Renewal>> {
        let leases = leases.to_vec();
        self.write(move |tx| lease::renew(tx, &leases, lease_ms)).await
    }

    async fn release(&self, lease: &Lease) -> StoreResult<bool> {
        let lease = lease.clone();
        self.write(move |tx| lease::release(tx, &lease)).await
    }

    async fn wait(&self, lanes: &[Lane], patience: Duration) {
        self.wait_for_lanes(lanes, patience).await;
    }
}

#[async_trait]
impl Commit for SqliteStore {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        let owned = request.clone();
        self.request(&request.request, move |tx| commit::commit(tx, &owned)).await
    }

    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<InboxEntry>> {
        let run = run.clone();
        self.read(move |db| runs::inbox(db, &run)).await
    }

    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()> {
        let run = run.clone();
        self.write(move |tx| commit::partial(tx, &run, after, &body)).await
    }
}

#[async_trait]
impl Inspect for SqliteStore {
    async fn now_ms(&self) -> StoreResult<i64> {
        Ok(self.clock_ms())
    }

    async fn head(&self, run: &RunId) -> StoreResult<Option<RunHead>> {
        let run = run.clone();
        self.read(move |db| runs::head(db, &run)).await
    }

    async fn payload(&self, run: &RunId) -> StoreResult<Option<Vec<u8>>> {
        let run = run.clone();
        self.read(move |db| runs::payload(db, &run)).await
    }

    async fn journal(
        &self,
        run: &RunId,
        from: u64,
        max: usize,
    ) -> StoreResult<Option<JournalPart>> {
        let run = run.clone();
        self.read(move |db| runs::journal(db, &run, from, max)).await
    }

    async fn checkpoint(&self, run: &RunId) -> StoreResult<Option<JournalPart>> {
        let run = run.clone();
        self.read(move |db| runs::checkpoint(db, &run)).await
    }

    async fn runs(
        &self,
        filter: &RunFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.read(move |db| lists::runs(db, &filter, after.as_ref(), limit)).await
    }

    async fn questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.read(move |db| questions::page(db, &filter, after.as_ref(), limit)).await
    }

    async fn session(&self, session: &SessionId) -> StoreResult<Option<SessionRecord>> {
        let session = session.clone();
        self.read(move |db| sessions::session(db, &session)).await
    }

    async fn sessions(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<SessionRecord>> {
        let after = after.cloned();
        self.read(move |db| sessions::sessions(db, after.as_ref(), limit)).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        let now_ms = self.clock_ms();
        self.read(move |db| read::registry::stats(db, now_ms)).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerRecord>> {
        self.read(read::registry::workers).await
    }

    async fn graphs(&self) -> StoreResult<Vec<GraphRecord>> {
        self.read(read::registry::graphs).await
    }

    async fn partials(&self, run: &RunId, after: u64) -> StoreResult<Vec<Partial>> {
        let run = run.clone();
        self.read(move |db| runs::partials(db, &run, after)).await
    }

    async fn changed(&self, run: &RunId, patience: Duration) {
        self.wait_for_run(run, patience).await;
    }

    async fn check(&self) -> StoreResult<Vec<Finding>> {
        let config = self.config().clone();
        self.read(move |db| check::check(db, &config)).await
    }
}

#[async_trait]
impl Maintain for SqliteStore {
    async fn beat(&self, record: &WorkerRecord) -> StoreResult<()> {
        let record = record.clone();
        self.write(move |tx| registry::beat(tx, &record)).await
    }

    async fn lost(
        &self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
    ) -> StoreResult<Vec<RunId>> {
        let (worker, evidence) = (worker.clone(), evidence.to_owned());
        let delays_ms = loss_delays_ms.to_vec();
        self.write(move |tx| lease::lost(tx, &worker, &evidence, &delays_ms)).await
    }

    async fn leave(&self, worker: &WorkerId) -> StoreResult<()> {
        let worker = worker.clone();
        self.write(move |tx| lease::leave(tx, &worker)).await
    }

    async fn tick(&self, request: &TickRequest) -> StoreResult<Ticked> {
        let request = request.clone();
        self.write(move |tx| tick::tick(tx, &request)).await
    }

    async fn prune(&self, retention: Retention, max: usize) -> StoreResult<usize> {
        self.write(move |tx| prune::prune(tx, retention, max)).await
    }

    async fn publish(&self, record: &GraphRecord) -> StoreResult<()> {
        let record = record.clone();
        self.write(move |tx| registry::publish(tx, &record)).await
    }

    async fn pause(&self, queue: &QueueId, paused: bool) -> StoreResult<()> {
        let queue = queue.clone();
        self.write(move |tx| registry::pause(tx, &queue, paused)).await
    }

    async fn delete_session(&self, session: &SessionId) -> StoreResult<Option<bool>> {
        let session = session.clone();
        self.write(move |tx| prune::delete_session(tx, &session)).await
    }

    async fn pinned(&self, graph: &GraphId, after: Option<&Cursor>) -> StoreResult<Page<RunHead>> {
        let (graph, after) = (graph.clone(), after.cloned());
        self.read(move |db| lists::pinned(db, &graph, after.as_ref())).await
    }

    async fn faults(&self) -> StoreResult<Vec<Damage>> {
        self.write(repair::faults).await
    }

    async fn repair(&self, faults: &[Damage]) -> StoreResult<Vec<bool>> {
        let faults = faults.to_vec();
        self.write(move |tx| repair::repair(tx, &faults)).await
    }
}

impl Store for SqliteStore {
    fn namespace(&self) -> &Namespace {
        &self.config().namespace
    }

    fn describe(&self) -> String {
        let config = self.config();
        let (location, namespace) = (&config.location, &config.namespace);
        format!(
            "SQLite {location}, namespace {namespace}, synchronous {}",
            config.synchronous.as_str()
        )
    }
}
