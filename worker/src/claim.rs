//! The claim loop: asks for as many runs as there are free slots, never for more, and hands them
//! to the runtime with their slot.
//!
//! ```text
//! slot free? -> claim -> runs: each with its slot into the channel
//!                     -> none: wait to be woken, or for the next timer, or a second
//!                     -> error: the same claim again, until its outcome is known
//! ```

use std::{sync::Arc, time::Duration};

use holdpoint_executor::{Claimed, Control, StoreTime};
use holdpoint_graph::WorkerId;
use holdpoint_storage::{ClaimRequest, ClaimedRun, Claims, Lane, Random, SharedClock, Store};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    WorkerConfig,
    job::{Job, hand_back},
    leases::Leases,
    reset::Reset,
    trouble::Troubles,
};

/// One claim of so many goes to the oldest run, whatever its priority.
const OLDEST_EVERY: u64 = 20;
/// The bytes after which a claim adds no further run.
const BYTES_MAX: usize = 8 << 20;
/// How long an unknown claim is asked for after the worker was told to end.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// How much longer than asked for a wait may take.
const OVERRUN: Duration = Duration::from_millis(500);
/// A wait that is shorter than this is hasty; so many hasty ones in a row are fine.
const HASTY: Duration = Duration::from_millis(2);
const HASTY_FREE: u32 = 5;

/// The share of all slots that is gathered before a claim, and for how long at most.
const GATHERED_SHARE: usize = 8;
const GATHER_MAX: Duration = Duration::from_millis(2);

/// The claim loop of a worker.
pub(crate) struct ClaimLoop {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) worker: WorkerId,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) config: WorkerConfig,
    pub(crate) clock: SharedClock,
    pub(crate) leases: Leases,
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) quiet: Arc<Quiet>,
    pub(crate) troubles: Troubles,
    pub(crate) reset: Arc<Reset>,
    /// No claim is made after this.
    pub(crate) stop: CancellationToken,
}

/// What the claim loop knows of there being nothing to do.
#[derive(Debug)]
pub(crate) struct Quiet {
    empty: watch::Sender<Empty>,
    look: Notify,
}

/// A claim that brought nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Empty {
    /// How many claims were made before and with this one.
    pub(crate) claims: u64,
    /// How long from then to the next timer, in ms.
    pub(crate) next_due_in_ms: Option<i64>,
}

impl Default for Quiet {
    fn default() -> Self {
        Self { empty: watch::Sender::new(Empty::default()), look: Notify::new() }
    }
}

impl Quiet {
    /// Makes the loop claim now, and answers when a claim that began after this brought nothing.
    pub(crate) async fn look(&self) -> Empty {
        let mut empty = self.empty.subscribe();
        // A claim that is under way may have been sent before the call; it is not counted.
        let after = empty.borrow().claims + 2;
        loop {
            self.look.notify_one();
            if empty.borrow_and_update().claims >= after {
                return *empty.borrow();
            }
            if empty.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// What is asked for, kept until the answer is known.
struct Asked {
    request: ClaimRequest,
    slots: Vec<OwnedSemaphorePermit>,
}

impl ClaimLoop {
    /// Claims until `stop`; runs that come after it are handed back.
    pub(crate) async fn run(mut self) {
        let slots = Arc::new(Semaphore::new(self.config.concurrency));
        let (mut count, mut good, mut hasty, mut has_more) = (0, 0, 0, false);
        while let Some(slots) = self.free(&slots, has_more).await {
            let max = slots.len();
            let request = self.request(max, (good + 1) % OLDEST_EVERY == 0);
            let mut asked = Asked { request, slots };
            let Some((claims, may_act_until)) = self.ask(&asked).await else {
                return self.settle(asked.request).await;
            };
            count += 1;
            has_more = claims.runs.len() == max;
            if claims.runs.is_empty() {
                asked.slots.clear();
                self.quiet.empty.send_modify(|empty| {
                    empty.claims = count;
                    empty.next_due_in_ms = claims.next_due_ms.map(|due| due - claims.now_ms);
                });
                hasty = if self.wait(&claims).await { 0 } else { hasty + 1 };
                self.slow_down(hasty).await;
                continue;
            }
            good += 1;
            hasty = 0;
            let now_ms = claims.now_ms;
            for run in claims.runs {
                let control = Control::new(may_act_until);
                let hold = self.leases.hold(run.lease.clone(), control.clone());
                let time = Arc::new(StoreTime::new(Arc::clone(&self.clock), now_ms));
                let Some(slot) = asked.slots.pop() else {
                    tracing::error!(run = %run.head.run, "claimed more than was asked for");
                    hand_back(&*self.store, &run.lease, &control, &self.clock).await;
                    continue;
                };
                let claimed = Claimed { run, control, time };
                self.pass_on(Job::new(claimed, hold, slot)).await;
            }
        }
    }

    /// The free slots, at least one and at most a batch; none when the worker is to end. While
    /// there is more than it can take, it gathers slots: fewer claims, and nothing waits longer.
    async fn free(
        &self,
        slots: &Arc<Semaphore>,
        has_more: bool,
    ) -> Option<Vec<OwnedSemaphorePermit>> {
        let batch = self.config.claim_batch;
        let wanted = if has_more { batch.min(self.config.concurrency / GATHERED_SHARE) } else { 1 };
        let mut free = Vec::with_capacity(batch);
        let gathered = sleep(GATHER_MAX);
        tokio::pin!(gathered);
        while free.len() < wanted.max(1) {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                slot = Arc::clone(slots).acquire_owned() => free.push(slot.ok()?),
                () = &mut gathered, if !free.is_empty() => break,
            }
        }
        // Runs that are about to end give back their slots meanwhile: larger batches under load.
        tokio::task::yield_now().await;
        while free.len() < batch {
            let Ok(slot) = Arc::clone(slots).try_acquire_owned() else { break };
            free.push(slot);
        }
        (!self.stop.is_cancelled()).then_some(free)
    }

    fn request(&self, max: usize, oldest_first: bool) -> ClaimRequest {
        ClaimRequest {
            worker: self.worker.clone(),
            nonce: Random.nonce(),
            lanes: self.lanes.clone(),
            max,
            lease_ms: self.config.lease_ms(),
            oldest_first,
            bytes_max: BYTES_MAX,
        }
    }

    /// Claims, and repeats the same claim until its outcome is known. None when the worker is to
    /// end before that. The call under way is not dropped: it may be answered with runs.
    ///
    /// A reply that took longer than a worker may act under its lease is of no use: the same claim
    /// again brings the same runs under leases that begin anew.
    async fn ask(&mut self, asked: &Asked) -> Option<(Claims, std::time::Instant)> {
        loop {
            let sent = self.clock.monotonic();
            self.troubles.asked();
            let error = match self.store.claim(&asked.request).await {
                Ok(claims) => {
                    self.troubles.over();
                    let may_act_until = sent + self.config.hold();
                    if claims.runs.is_empty() || self.clock.monotonic() < may_act_until {
                        return Some((claims, may_act_until));
                    }
                    if self.stop.is_cancelled() {
                        return None;
                    }
                    continue;
                }
                Err(error) => error,
            };
            self.reset.is_told_by(&error);
            let pause = self.troubles.failed(&error);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                () = sleep(pause) => {}
            }
        }
    }

    /// Hands a claimed run on, or back when the worker is to end meanwhile.
    async fn pass_on(&self, job: Job) {
        if self.stop.is_cancelled() {
            return job.hand_back(&*self.store, &self.clock).await;
        }
        // The channel has room for every slot.
        if let Err(refused) = self.jobs.send(job).await {
            refused.0.hand_back(&*self.store, &self.clock).await;
        }
    }

    /// Waits until there may be something to claim. Says whether that took any time.
    async fn wait(&self, claims: &Claims) -> bool {
        let jittered = self.config.poll.mul_f64(0.75 + Random.unit() / 2.0);
        let due_ms = claims.next_due_ms.map(|due| (due - claims.now_ms).max(1).unsigned_abs());
        let patience = due_ms.map_or(jittered, |due| jittered.min(Duration::from_millis(due)));
        let began = self.clock.monotonic();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = self.quiet.look.notified() => {}
            () = self.store.wait(&self.lanes, patience) => {}
            // A wait that the store forgot must not keep the worker from looking.
            () = sleep(patience + OVERRUN) => {}
        }
        self.clock.monotonic().saturating_duration_since(began) >= HASTY
    }

    /// A store that cannot wait, or wakes for runs that others take, must not make a loop that
    /// claims at full speed.
    async fn slow_down(&self, hasty: u32) {
        if hasty > HASTY_FREE {
            let pause = HASTY * (hasty - HASTY_FREE).min(50);
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Asks what became of a claim of unknown outcome and hands back what it brought. It names no
    /// lane, so that it can answer but not claim.
    async fn settle(&mut self, mut request: ClaimRequest) {
        request.lanes.clear();
        let end = self.clock.monotonic() + SETTLE_MAX;
        while self.clock.monotonic() < end {
            let sent = self.clock.monotonic();
            match self.store.claim(&request).await {
                Ok(claims) => {
                    for ClaimedRun { lease, .. } in claims.runs {
                        let control = Control::new(sent + self.config.hold());
                        hand_back(&*self.store, &lease, &control, &self.clock).await;
                    }
                    return;
                }
                Err(error) => sleep(self.troubles.failed(&error)).await,
            }
        }
        tracing::warn!("whether the last claim brought runs is unknown; their leases run out");
    }
}
