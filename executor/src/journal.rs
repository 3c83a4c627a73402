//! The owner's pen: events become chained records and are committed under the lease, repeated
//! with the same request id until the store has answered or the lease is over.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use holdpoint_graph::{
    DEADLINE, Event, Interrupt, InterruptId, Namespace, Progress, RequestId,
    limits::{SNAPSHOT_FACTOR, SNAPSHOT_FLOOR_BYTES},
};
use holdpoint_storage::{
    Address, Chain, CommitReply, CommitRequest, Disposition, InboxEntry, Lease, OpenedInterrupt,
    Random, Record, SignalRecord, SignalRequest, Store, StoreError, StoreResult,
};

use crate::{Control, ExecutorConfig, sink::Listeners, time::StoreTime};

/// The pen of one claimed run.
pub(crate) struct Journal {
    store: Arc<dyn Store>,
    listeners: Listeners,
    config: ExecutorConfig,
    time: Arc<StoreTime>,
    control: Control,
    lease: Lease,
    chain: Chain,
    tail_bytes: usize,
    snapshot_bytes: usize,
    moved_at_ms: Option<i64>,
    pending: Vec<(i64, Event)>,
    consumed: Vec<String>,
    stored_open: BTreeSet<InterruptId>,
    pin: Option<holdpoint_graph::Fingerprint>,
}

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is durable; the answers that wait. `is_parked` is false when a park met an answer.
    Done { inbox: Vec<InboxEntry>, is_owner: bool },
    /// The lease is somebody else's.
    Fenced,
    /// The run is to be cancelled; the events are still pending.
    Cancelled,
    /// The store did not answer before the lease was over, or cannot take the commit.
    GivenUp(StoreError),
}

/// What a journal is opened with.
pub(crate) struct Opening {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) listeners: Listeners,
    pub(crate) config: ExecutorConfig,
    pub(crate) time: Arc<StoreTime>,
    pub(crate) control: Control,
    pub(crate) lease: Lease,
}

impl Journal {
    /// A pen that goes on behind what was loaded, and the progress there.
    pub(crate) fn new(opening: Opening, loaded: Loaded) -> (Self, Progress) {
        let Opening { store, listeners, config, time, control, lease } = opening;
        let Loaded { chain, progress, snapshot_bytes, tail_bytes, moved_at_ms } = loaded;
        let journal = Self {
            store,
            listeners,
            config,
            time,
            control,
            lease,
            chain,
            tail_bytes,
            snapshot_bytes,
            moved_at_ms,
            pending: Vec::new(),
            consumed: Vec::new(),
            // Which questions the store has open.
            stored_open: progress.open().map(|open| open.interrupt.clone()).collect(),
            pin: None,
        };
        (journal, progress)
    }

    /// When the run last moved, or meant to move, before this claim.
    pub(crate) const fn moved_at_ms(&self) -> Option<i64> {
        self.moved_at_ms
    }

    /// The store's time.
    pub(crate) fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }

    /// Adds an event that was applied already; it is written with the next commit.
    pub(crate) fn push(&mut self, event: Event) {
        self.pending.push((self.time.now_ms(), event));
    }

    /// The inbox entry goes away with the next commit.
    pub(crate) fn consume(&mut self, key: String) {
        self.consumed.push(key);
    }

    /// The run is pinned to the structure with the next commit.
    pub(crate) fn pin(&mut self, fingerprint: &holdpoint_graph::Fingerprint) {
        self.pin = Some(fingerprint.clone());
    }

    /// Whether something is to be written before anything may start.
    pub(crate) fn has_result(&self) -> bool {
        !self.consumed.is_empty() || self.pending.iter().any(|(_, event)| event.is_progress())
    }

    /// Takes back the last event: the run ends otherwise.
    pub(crate) fn take_back_last(&mut self) {
        self.pending.pop();
    }

    /// Writes what is pending. `progress` has all of it applied.
    pub(crate) async fn commit(
        &mut self,
        progress: &Progress,
        disposition: Disposition,
    ) -> Written {
        let mut chain = self.chain.clone();
        let (from, previous) = (chain.seq(), chain.hash());
        let epoch = self.lease.pair.epoch;
        let encode = |(at_ms, event): &(i64, Event)| chain.encode(*at_ms, epoch, event);
        let records: Vec<Vec<u8>> = self.pending.iter().map(encode).collect();
        let added: usize = records.iter().map(Vec::len).sum();
        let tail_bytes = self.tail_bytes + added;
        let is_final = matches!(disposition, Disposition::Finish { .. });
        let snapshot = if is_final { None } else { self.snapshot(&chain, progress, tail_bytes) };
        let open: BTreeSet<InterruptId> =
            progress.open().map(|open| open.interrupt.clone()).collect();
        let request = CommitRequest {
            lease: self.lease.clone(),
            request: Random.request_id(),
            from,
            previous,
            records,
            hash: chain.hash(),
            snapshot,
            consumed: self.consumed.clone(),
            opened: self.opened(progress),
            closed: self.stored_open.difference(&open).cloned().collect(),
            is_progress: self.pending.iter().any(|(_, event)| event.is_progress()),
            pin: self.pin.clone(),
            lease_ms: self.lease_ms(),
            disposition,
        };
        match self.send(&request).await {
            Ok(CommitReply::Done { now_ms, status, inbox, durability: _ }) => {
                self.time.told(now_ms);
                self.tail_bytes = tail_bytes;
                if request.snapshot.is_some() {
                    self.tail_bytes = 0;
                }
                self.chain = chain;
                self.stored_open = open;
                self.tell(from);
                (self.consumed, self.pin) = (Vec::new(), None);
                Written::Done { inbox, is_owner: status == holdpoint_graph::RunStatus::Running }
            }
            Ok(CommitReply::Cancelled) => Written::Cancelled,
            Ok(CommitReply::Fenced) => {
                tracing::warn!(run = %self.lease.run, epoch, "a commit was refused as stale");
                Written::Fenced
            }
            Ok(CommitReply::Sequence { seq }) => {
                tracing::error!(run = %self.lease.run, ours = from, seq, "the journal moved");
                Written::Fenced
            }
            Err(error) => Written::GivenUp(error),
        }
    }

    /// The lease that a commit asks for: none while less than a tenth of the last one is over.
    fn lease_ms(&self) -> i64 {
        let deadline = self.control.told().deadline;
        let left = deadline.saturating_duration_since(self.time.monotonic());
        let is_fresh = left + self.config.lease / 10 > self.config.hold();
        if is_fresh { 0 } else { self.config.lease_ms() }
    }

    /// Repeats the request until there is an answer or the owner's time is over.
    async fn send(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        self.insist("commit", || async {
            let sent = self.time.monotonic();
            let reply = self.store.commit(request).await?;
            if request.lease_ms > 0 {
                self.control.extend(sent + self.config.hold());
            }
            Ok(reply)
        })
        .await
    }

    /// Gives these open questions their default answers, unless somebody was quicker. The answers
    /// that wait then.
    pub(crate) async fn pass_deadlines(&self, due: &[Interrupt]) -> StoreResult<Vec<InboxEntry>> {
        for open in due {
            let signal = self.default_answer(open)?;
            self.insist("default answer", || self.store.signal(&signal)).await?;
        }
        self.insist("look at the answers", || self.inbox()).await
    }

    fn default_answer(&self, open: &Interrupt) -> StoreResult<SignalRequest> {
        let request = deadline_request(&open.interrupt);
        let record = SignalRecord {
            answer: open.default_answer.clone().unwrap_or_default(),
            by: DEADLINE.to_owned(),
            at_ms: self.time.now_ms(),
            comment: None,
            groups: Vec::new(),
            from: None,
            request: request.clone(),
        };
        Ok(SignalRequest {
            run: self.lease.run.clone(),
            request: RequestId::new(request)?,
            address: Address::Interrupt(open.interrupt.clone()),
            args_hash: None,
            ballot: None,
            record: record.encode(),
        })
    }

    /// Whether the store has the question open.
    pub(crate) fn is_stored(&self, question: &InterruptId) -> bool {
        self.stored_open.contains(question)
    }

    /// Repeats a call until there is an answer or the owner's time is over.
    async fn insist<T, F>(&self, what: &str, call: impl Fn() -> F) -> StoreResult<T>
    where
        F: Future<Output = StoreResult<T>>,
    {
        let mut wait = Duration::from_millis(20);
        loop {
            match call().await {
                Err(error) if error.is_retryable() => {
                    let next = self.time.monotonic() + wait;
                    if !self.control.may_act(next) {
                        return Err(error);
                    }
                    tracing::debug!(run = %self.lease.run, what, %error, "not taken, repeating");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(1));
                }
                told => return told,
            }
        }
    }

    /// A snapshot, when the records since the last one outweigh it. The size of one that was
    /// made and not written is remembered, so that a large state is not measured again and again.
    fn snapshot(
        &mut self,
        chain: &Chain,
        progress: &Progress,
        tail_bytes: usize,
    ) -> Option<Vec<u8>> {
        let outweighs = |bytes: usize| tail_bytes >= SNAPSHOT_FACTOR * bytes + SNAPSHOT_FLOOR_BYTES;
        if !outweighs(self.snapshot_bytes) {
            return None;
        }
        let snapshot = chain.encode_snapshot(progress);
        self.snapshot_bytes = snapshot.len();
        outweighs(snapshot.len()).then_some(snapshot)
    }

    fn opened(&self, progress: &Progress) -> Vec<OpenedInterrupt> {
        let is_new = |open: &&Interrupt| {
            !self.stored_open.contains(&open.interrupt) || self.has_changed(&open.interrupt)
        };
        progress.open().filter(is_new).map(OpenedInterrupt::of).collect()
    }

    /// Whether an open question has a vote or a reminder more than the stored one.
    fn has_changed(&self, question: &InterruptId) -> bool {
        self.pending.iter().any(|(_, event)| match event {
            Event::VoteCast { interrupt, .. } | Event::InterruptReminded { interrupt, .. } => {
                interrupt == question
            }
            _ => false,
        })
    }

    /// Tells the listeners what is durable now.
    fn tell(&mut self, from: u64) {
        let epoch = self.lease.pair.epoch;
        for (seq, (at_ms, event)) in (from..).zip(self.pending.drain(..)) {
            tracing::debug!(run = %self.lease.run, seq, event = event.type_name(), "committed");
            let record = Record { seq, at_ms, epoch, event };
            self.listeners.committed(&self.lease.run, &record);
        }
    }

    /// Hands the run back, claimable now. What is pending is lost: it starts nothing anew.
    pub(crate) async fn release(&self) -> Result<bool, StoreError> {
        self.store.release(&self.lease).await
    }

    /// The answers that wait.
    pub(crate) async fn inbox(&self) -> Result<Vec<InboxEntry>, StoreError> {
        self.store.inbox(&self.lease.run).await
    }
}

/// The request by which the deadline of a question answers it.
pub(crate) fn deadline_request(question: &InterruptId) -> String {
    format!("{DEADLINE}-{question}")
}

/// The chain and progress of a claimed run, and the time of its last move.
pub(crate) struct Loaded {
    pub(crate) chain: Chain,
    pub(crate) progress: Progress,
    pub(crate) snapshot_bytes: usize,
    pub(crate) tail_bytes: usize,
    /// When it last moved or meant to move.
    pub(crate) moved_at_ms: Option<i64>,
}

impl Loaded {
    /// The end of a journal that was not read: for a last word, which needs no progress.
    pub(crate) fn behind(chain: Chain) -> Self {
        let progress = Progress::new();
        Self { chain, progress, snapshot_bytes: 0, tail_bytes: 0, moved_at_ms: None }
    }
}

/// Verifies and folds what a claim or a read returned.
pub(crate) fn load(
    namespace: &Namespace,
    run: &holdpoint_graph::RunId,
    snapshot: Option<&[u8]>,
    records: &[Vec<u8>],
) -> Result<Loaded, StoreError> {
    let (mut chain, mut progress) = match snapshot {
        None => (Chain::start(namespace, run), Progress::new()),
        Some(snapshot) => Chain::decode_snapshot(namespace, run, snapshot)?,
    };
    let mut moved_at_ms = None;
    for record in records {
        let record = chain.decode(record)?;
        progress.apply(&record.event).map_err(|fault| StoreError::Corrupt {
            what: format!("run {run}"),
            why: fault.to_string(),
        })?;
        let meant = match &record.event {
            Event::RunParked { wake_at_ms } => wake_at_ms.unwrap_or(record.at_ms),
            Event::RunRescheduled { until_ms } => *until_ms,
            _ => record.at_ms,
        };
        moved_at_ms = Some(meant.max(record.at_ms));
    }
    let snapshot_bytes = snapshot.map_or(0, <[u8]>::len);
    let tail_bytes = records.iter().map(Vec::len).sum();
    Ok(Loaded { chain, progress, snapshot_bytes, tail_bytes, moved_at_ms })
}
