//! The world of one property: a fresh store, and short ways to say the usual things to it.
#![expect(clippy::unwrap_used, reason = "a property fails by a panic")]

use std::{fmt::Debug, ops::Deref, str::FromStr, sync::Arc, time::Duration};

use holdpoint_graph::{End, Event, Fingerprint, RunId, RunStatus, fingerprint::of_parts};

use super::Bench;
use crate::{
    Address, AppendRequest, Chain, ClaimRequest, ClaimedRun, CommitReply, CommitRequest,
    Disposition, Enqueued, IfBusy, InboxEntry, Lane, Lease, NewRun, OpenedInterrupt, Random,
    RunHead, SignalReply, SignalRequest, Store, TickRequest, Ticked, When, meaning_hash,
};

/// An hour in ms: a lease or a delay that does not end during a test.
pub(crate) const HOUR_MS: i64 = 3_600_000;

/// How long a property waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A fresh store with helpers. It dereferences to the store.
pub(crate) struct World {
    /// The store, for tasks that need their own handle.
    pub(crate) store: Arc<dyn Store>,
}

impl Deref for World {
    type Target = dyn Store;
    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl World {
    /// The world of the namespace that most properties use.
    pub(crate) async fn new(bench: &dyn Bench) -> Self {
        Self::named(bench, "conformance").await
    }

    /// The world of a namespace.
    pub(crate) async fn named(bench: &dyn Bench, name: &str) -> Self {
        Self { store: bench.fresh(&id(name)).await }
    }

    /// Stores one run and returns what the store said of it.
    pub(crate) async fn create(&self, item: &NewRun) -> Enqueued {
        let mut reply = self.enqueue(std::slice::from_ref(item), false).await.unwrap();
        assert_eq!(reply.items.len(), 1, "one answer for one item");
        reply.items.remove(0)
    }

    /// Stores a run that must be new.
    pub(crate) async fn created(&self, item: &NewRun) -> RunId {
        let said = self.create(item).await;
        assert!(matches!(said, Enqueued::Created { .. }), "{said:?}");
        item.run.clone()
    }

    /// The head of a run that must exist.
    pub(crate) async fn head_of(&self, run: &RunId) -> RunHead {
        self.head(run).await.unwrap().unwrap_or_else(|| panic!("there is no run {run}"))
    }

    /// The state of a run that must exist.
    pub(crate) async fn status_of(&self, run: &RunId) -> RunStatus {
        self.head_of(run).await.status()
    }

    /// Claims at most `max` runs of the default lane.
    pub(crate) async fn claim_up_to(&self, max: usize) -> Vec<ClaimedRun> {
        self.claim(&claim_request("w1", max)).await.unwrap().runs
    }

    /// Claims the next run of the default lane.
    pub(crate) async fn claim_next(&self) -> ClaimedRun {
        let mut runs = self.claim_up_to(1).await;
        assert_eq!(runs.len(), 1, "a run was to be claimed");
        runs.remove(0)
    }

    /// The ids of the runs that a claim takes, in its order.
    pub(crate) async fn claimed_ids(&self, request: &ClaimRequest) -> Vec<String> {
        let claims = self.claim(request).await.unwrap();
        claims.runs.iter().map(|claimed| claimed.head.run.to_string()).collect()
    }

    /// A run that is stored and claimed.
    pub(crate) async fn running(&self, name: &str) -> ClaimedRun {
        self.created(&new_run(name)).await;
        self.claim_next().await
    }

    /// A run that is parked at these questions.
    pub(crate) async fn parked(&self, name: &str, opened: &[OpenedInterrupt]) -> ClaimedRun {
        let claimed = self.running(name).await;
        let park = Disposition::Park { wake_at_ms: None };
        let request = CommitRequest { opened: opened.to_vec(), ..self.draft(&claimed, 1, park) };
        assert_eq!(self.done(&request).await.0, RunStatus::Parked);
        claimed
    }

    /// A run that ended.
    pub(crate) async fn ended(&self, name: &str, end: End) -> RunId {
        let claimed = self.running(name).await;
        self.end(&claimed, end).await;
        claimed.head.run
    }

    /// Ends a claimed run whose head is the one of the claim.
    pub(crate) async fn end(&self, claimed: &ClaimedRun, end: End) {
        let request = self.draft(claimed, 1, Disposition::Finish { end });
        self.done(&request).await;
    }

    /// A commit that must be taken: the state afterwards, and the inbox.
    pub(crate) async fn done(&self, request: &CommitRequest) -> (RunStatus, Vec<InboxEntry>) {
        let reply = self.commit(request).await.unwrap();
        let CommitReply::Done { status, inbox, .. } = reply else {
            panic!("the commit of {} was not taken: {reply:?}", request.lease.run)
        };
        (status, inbox)
    }

    /// A commit of `events` events on the head that the claim brought.
    pub(crate) fn draft(
        &self,
        claimed: &ClaimedRun,
        events: u64,
        disposition: Disposition,
    ) -> CommitRequest {
        self.draft_on(&claimed.lease, &claimed.head, events, disposition)
    }

    /// A commit of `events` events on this head.
    pub(crate) fn draft_on(
        &self,
        lease: &Lease,
        head: &RunHead,
        events: u64,
        disposition: Disposition,
    ) -> CommitRequest {
        let mut chain = self.chain(head);
        let records = (0..events).map(|n| chain.encode(1_000, lease.pair.epoch, &event(n)));
        CommitRequest {
            lease: lease.clone(),
            request: Random.request_id(),
            from: head.seq,
            previous: head.hash.clone(),
            records: records.collect(),
            hash: chain.hash(),
            snapshot: None,
            consumed: Vec::new(),
            opened: Vec::new(),
            closed: Vec::new(),
            is_progress: false,
            pin: None,
            lease_ms: HOUR_MS,
            disposition,
        }
    }

    /// An append of one event on this head.
    pub(crate) fn append_on(&self, head: &RunHead) -> AppendRequest {
        let mut chain = self.chain(head);
        let record = chain.encode(1_000, 0, &event(head.seq));
        AppendRequest {
            run: head.run.clone(),
            request: Random.request_id(),
            from: head.seq,
            previous: head.hash.clone(),
            record,
            hash: chain.hash(),
        }
    }

    /// An append of one event on the run as it is now.
    pub(crate) async fn append_now(&self, run: &RunId) -> AppendRequest {
        self.append_on(&self.head_of(run).await)
    }

    fn chain(&self, head: &RunHead) -> Chain {
        Chain::at(self.namespace(), &head.run, head.seq, &head.hash).unwrap()
    }

    /// Sends an answer to one question.
    pub(crate) async fn answer(&self, run: &RunId, address: Address, record: &str) -> SignalReply {
        self.signal(&signal_request(run, address, record)).await.unwrap()
    }

    /// A tick that does what it can.
    pub(crate) async fn tick_once(&self) -> Ticked {
        self.tick(&tick_request()).await.unwrap()
    }

    /// Ticks until `wanted` holds of what one of them did.
    pub(crate) async fn tick_until(&self, wanted: impl Fn(&Ticked) -> bool) -> Ticked {
        for _ in 0..4_000 {
            let ticked = self.tick_once().await;
            if wanted(&ticked) {
                return ticked;
            }
            look_again().await;
        }
        panic!("no tick did what was waited for");
    }

    /// Waits until the store's clock has gone on by more than `ms`.
    pub(crate) async fn let_pass(&self, ms: i64) {
        let start_ms = self.now_ms().await.unwrap();
        for _ in 0..4_000 {
            if self.now_ms().await.unwrap() > start_ms + ms {
                return;
            }
            look_again().await;
        }
        panic!("the store's clock does not go on");
    }
}

/// The pause between two looks at what only the store's clock can change.
pub(crate) async fn look_again() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

fn event(number: u64) -> Event {
    Event::RunRescheduled { until_ms: number as i64 }
}

/// A run of graph `mailer` in queue `default`, to start now.
pub(crate) fn new_run(name: &str) -> NewRun {
    NewRun {
        run: id(name),
        request: id(&format!("new-{name}")),
        graph: id("mailer"),
        fingerprint: None,
        queue: id("default"),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: format!("payload of {name}").into_bytes(),
        payload_hash: meaning_hash(&serde_json::json!(name)),
        priority: 5,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: Vec::new(),
        queue_depth_max: 1_000_000,
    }
}

/// A run of session `s1`.
pub(crate) fn session_run(name: &str, if_busy: IfBusy) -> NewRun {
    NewRun { session: Some(id("s1")), if_busy, ..new_run(name) }
}

/// The lane of [`new_run`].
pub(crate) fn lane() -> Lane {
    new_run("any").lane()
}

/// A claim from the lane of [`new_run`].
pub(crate) fn claim_request(worker: &str, max: usize) -> ClaimRequest {
    ClaimRequest {
        worker: id(worker),
        nonce: Random.nonce(),
        lanes: vec![lane()],
        max,
        lease_ms: HOUR_MS,
        oldest_first: false,
        bytes_max: 1 << 20,
    }
}

/// An answer with a request id of its own.
pub(crate) fn signal_request(run: &RunId, address: Address, record: &str) -> SignalRequest {
    SignalRequest {
        run: run.clone(),
        request: Random.request_id(),
        address,
        args_hash: None,
        ballot: None,
        record: record.as_bytes().to_vec(),
    }
}

/// A tick without grace that takes no gap for a stall.
pub(crate) fn tick_request() -> TickRequest {
    TickRequest {
        worker: id("ticker"),
        nonce: Random.nonce(),
        lease_ms: HOUR_MS,
        grace_ms: 0,
        loss_delays_ms: vec![0],
        hold_after_ms: HOUR_MS,
        doubt: false,
        max: 100,
    }
}

/// A question of gate `gate`, or of no gate.
pub(crate) fn question(name: &str, gate: Option<&str>) -> OpenedInterrupt {
    OpenedInterrupt {
        interrupt: id(name),
        gate: gate.map(str::to_owned),
        args_hash: format!("args-of-{name}"),
        deadline_ms: None,
        assignees: Vec::new(),
        groups: Vec::new(),
        votes: Vec::new(),
        body: format!("{{\"question\":\"{name}\"}}").into_bytes(),
    }
}

/// The fingerprint of a structure by name.
pub(crate) fn structure(name: &str) -> Fingerprint {
    Fingerprint::from_text(&of_parts(&[name]))
}

/// An address by interrupt id.
pub(crate) fn to_interrupt(name: &str) -> Address {
    Address::Interrupt(id(name))
}

/// An address by gate.
pub(crate) fn to_gate(name: &str) -> Address {
    Address::Gate(name.to_owned())
}

/// Owned texts, to compare lists of ids.
pub(crate) fn names<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// A checked id of whatever kind is wanted.
pub(crate) fn id<T>(text: &str) -> T
where
    T: FromStr,
    T::Err: Debug,
{
    text.parse().expect("the suite's ids are within the alphabet")
}
