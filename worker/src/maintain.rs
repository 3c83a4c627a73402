//! The upkeep that every worker does: its sign of life, lost leases, timers, runs that must end,
//! and the end of old ones. No worker leads; each act is atomic in the store.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use holdpoint_executor::{Claimed, Control, QueuedExecutor, StoreTime};
use holdpoint_graph::RunId;
use holdpoint_storage::{
    GraphRecord, Random, SharedClock, Store, StoreResult, TickRequest, WorkerRecord,
};
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{Instant as Timer, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    WorkerConfig,
    config::ms,
    health::{Health, Part},
    leases::Leases,
    reset::Reset,
    trouble::Troubles,
};

/// The most runs of each kind in one tick.
const TICK_MAX: usize = 100;
/// The most closing claims under way.
const CLOSING_MAX: usize = 200;
/// How far the local clock and the store's may run apart between two ticks.
const APART_MAX_MS: i64 = 2_000;
/// A reply that took longer says too little of the store's clock.
const SKEW_REPLY_MAX: Duration = Duration::from_millis(500);
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// The most ended runs that one call deletes, and the most calls in a row.
const PRUNE_MAX: usize = 500;
const PRUNE_CALLS_MAX: usize = 20;
/// The most ids that one line in the log names.
const SHOWN_MAX: usize = 5;
/// How long the farewell may take.
const LEAVE_MAX: Duration = Duration::from_secs(2);

/// What the upkeep is made of, before it has its store.
#[derive(Clone)]
pub(crate) struct Upkeep {
    pub(crate) leases: Leases,
    pub(crate) clock: SharedClock,
    pub(crate) health: Health,
    pub(crate) config: WorkerConfig,
    pub(crate) record: WorkerRecord,
    pub(crate) graphs: Vec<GraphRecord>,
    /// Ends the runs of closing claims.
    pub(crate) executor: QueuedExecutor,
    /// Where they are ended: not on the upkeep's own thread, which has leases to renew.
    pub(crate) runtime: Handle,
    pub(crate) closings: TaskTracker,
    pub(crate) reset: Arc<Reset>,
    /// Raised when the worker's readiness changed, so that the store is told.
    pub(crate) changed: Arc<Notify>,
    /// Nothing is claimed after this, by a tick either.
    pub(crate) draining: CancellationToken,
}

/// The upkeep at work.
pub(crate) struct Maintain {
    store: Arc<dyn Store>,
    parts: Upkeep,
    troubles: Troubles,
    must_publish: bool,
    apart: Apart,
    is_skewed: bool,
}

impl Maintain {
    pub(crate) fn new(store: Arc<dyn Store>, parts: Upkeep) -> Self {
        let (clock, health) = (Arc::clone(&parts.clock), parts.health.clone());
        let troubles = Troubles::new("the upkeep", Part::Tick, clock, health);
        Self {
            store,
            parts,
            troubles,
            must_publish: true,
            apart: Apart::default(),
            is_skewed: false,
        }
    }

    /// Keeps things up until `stop`, then takes the worker off the list.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let now = Timer::now();
        let reset = Arc::clone(&self.parts.reset);
        let changed = Arc::clone(&self.parts.changed);
        let draining = self.parts.draining.clone();
        let mut beat = now;
        let mut tick = now + jittered(self.parts.config.tick);
        let mut prune = now + PRUNE_EVERY.mul_f64(Random.unit());
        loop {
            let is_draining = draining.is_cancelled();
            let next = if is_draining { beat } else { beat.min(tick).min(prune) };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = draining.cancelled(), if !is_draining => beat = Timer::now(),
                () = reset.noticed() => self.must_publish = true,
                () = changed.notified() => beat = Timer::now(),
                () = sleep_until(next) => {}
            }
            let now = Timer::now();
            if beat <= now || self.must_publish {
                self.troubles.asked();
                let result = self.beat().await;
                let pause = self.noted(&result).unwrap_or(self.parts.config.beat());
                beat = Timer::now() + pause;
            }
            if tick <= now && !draining.is_cancelled() {
                self.troubles.asked();
                let result = self.tick().await;
                self.noted(&result);
                tick = Timer::now() + jittered(self.parts.config.tick);
            }
            if prune <= now && !draining.is_cancelled() {
                self.troubles.asked();
                let result = self.prune().await;
                self.noted(&result);
                prune = Timer::now() + jittered(PRUNE_EVERY);
            }
        }
        self.leave().await;
    }

    /// Takes note of how a call ended; after a failure, how long to wait before the next one.
    fn noted(&mut self, result: &StoreResult<()>) -> Option<Duration> {
        match result {
            Ok(()) => {
                self.troubles.over();
                None
            }
            Err(error) => {
                self.must_publish |= self.parts.reset.is_told_by(error);
                Some(self.troubles.failed(error))
            }
        }
    }

    async fn beat(&mut self) -> StoreResult<()> {
        if self.parts.record.since_ms == 0 {
            self.parts.record.since_ms = self.store.now_ms().await?;
        }
        self.parts.record.is_draining = self.parts.draining.is_cancelled();
        self.parts.record.trouble = self.parts.health.trouble();
        self.store.beat(&self.parts.record).await?;
        if self.must_publish {
            for graph in &self.parts.graphs {
                self.store.publish(graph).await?;
            }
            self.must_publish = false;
        }
        Ok(())
    }

    async fn tick(&mut self) -> StoreResult<()> {
        let free = CLOSING_MAX.saturating_sub(self.parts.closings.len());
        if free == 0 {
            return Ok(());
        }
        let config = &self.parts.config;
        let request = TickRequest {
            worker: self.parts.record.worker.clone(),
            nonce: Random.nonce(),
            lease_ms: config.lease_ms(),
            grace_ms: ms(config.grace),
            loss_delays_ms: config.loss_delays_ms(),
            hold_after_ms: ms(config.hold_after),
            doubt: self.apart.doubt,
            max: free.min(TICK_MAX),
        };
        let sent = self.parts.clock.monotonic();
        let ticked = self.store.tick(&request).await?;
        let may_act_until = sent + config.hold();
        let received = self.parts.clock.monotonic();
        self.apart.seen((sent, received), ticked.now_ms);
        if received - sent < SKEW_REPLY_MAX {
            self.warn_of_skew(ticked.now_ms);
        }
        if let Some(until_ms) = ticked.held_until_ms {
            tracing::debug!(until_ms, "no lease is taken for lost: the store stalled");
        }
        if !ticked.reaped.is_empty() {
            let (count, runs) = (ticked.reaped.len(), some_of(&ticked.reaped));
            tracing::warn!(count, runs, "runs lost their worker and are offered again");
        }
        for run in ticked.closing {
            let control = Control::new(may_act_until);
            let hold = self.parts.leases.hold(run.lease.clone(), control.clone());
            let time = Arc::new(StoreTime::new(Arc::clone(&self.parts.clock), ticked.now_ms));
            let executor = self.parts.executor.clone();
            let claimed = Claimed { run, control, time };
            let close = async move {
                executor.close(claimed).await;
                drop(hold);
            };
            self.parts.closings.spawn_on(close, &self.parts.runtime);
        }
        Ok(())
    }

    /// Says once when this host's clock is wrong. Nothing here depends on it; logs and what nodes
    /// do with it may.
    fn warn_of_skew(&mut self, store_ms: i64) {
        let skew_ms = self.parts.clock.wall_ms() - store_ms;
        let is_skewed = skew_ms.abs() > APART_MAX_MS;
        if is_skewed && !std::mem::replace(&mut self.is_skewed, true) {
            tracing::warn!(skew_ms, "the clock of this host is not the store's");
        }
        self.is_skewed = is_skewed;
    }

    async fn prune(&self) -> StoreResult<()> {
        for _ in 0..PRUNE_CALLS_MAX {
            let gone = self.store.prune(self.parts.config.retention, PRUNE_MAX).await?;
            if gone < PRUNE_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Takes the worker off the list. One that still holds leases is not gone in order: its
    /// record stays until it is seen to be lost.
    async fn leave(&self) {
        if !self.parts.leases.is_empty() {
            return;
        }
        let left = timeout(LEAVE_MAX, self.store.leave(&self.parts.record.worker)).await;
        if !matches!(left, Ok(Ok(()))) {
            tracing::warn!("could not take the worker off the list; it will be shown as lost");
        }
    }
}

/// The first of many ids, for one line in the log.
pub(crate) fn some_of(runs: &[RunId]) -> String {
    let shown: Vec<&str> = runs.iter().take(SHOWN_MAX).map(RunId::as_str).collect();
    let more = if runs.len() > SHOWN_MAX { " …" } else { "" };
    shown.join(" ") + more
}

fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.75 + Random.unit() / 2.0)
}

/// Compares how much time passed here and in the store. The store's time of a reply was told at
/// some moment between the call and the reply, so the difference of the clocks is known within
/// these bounds; when two of them do not meet, one of the clocks jumped.
#[derive(Debug, Default)]
struct Apart {
    /// The beginning of local time, and the least and the greatest difference seen last, in ms.
    last: Option<(Instant, i64, i64)>,
    doubt: bool,
}

impl Apart {
    fn seen(&mut self, (sent, received): (Instant, Instant), store_ms: i64) {
        let zero = self.last.map_or(sent, |(zero, ..)| zero);
        let local_ms = |at: Instant| ms(at.saturating_duration_since(zero));
        let (least, most) = (store_ms - local_ms(received), store_ms - local_ms(sent));
        self.doubt = self.last.is_some_and(|(_, last_least, last_most)| {
            least > last_most + APART_MAX_MS || most < last_least - APART_MAX_MS
        });
        self.last = Some((zero, least, most));
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_storage::{Clock as _, SystemClock};

    use super::*;

    fn check(replies: &[(u64, u64, i64)], expect: &[bool]) {
        let zero = SystemClock.monotonic();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let mut apart = Apart::default();
        let seen = replies.iter().map(|(sent, received, store_ms)| {
            apart.seen((at(*sent), at(*received)), *store_ms);
            apart.doubt
        });
        assert_eq!(seen.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn clocks_that_run_together_are_not_doubted() {
        check(&[(0, 5, 9_000), (500, 510, 9_505), (60_000, 60_001, 69_000)], &[false; 3]);
    }

    #[test]
    fn a_slow_reply_is_no_jump() {
        check(&[(0, 1, 9_000), (500, 8_500, 17_400), (9_000, 9_001, 18_001)], &[false; 3]);
        check(&[(0, 1, 9_000), (500, 8_500, 9_500), (9_000, 9_001, 18_001)], &[false; 3]);
    }

    #[test]
    fn a_jump_of_either_clock_is_doubted_once() {
        let steps = [(0, 1, 9_000), (500, 501, 12_600), (1_000, 1_001, 13_100)];
        check(&steps, &[false, true, false]);
        let steps = [(0, 1, 9_000), (500, 501, 7_400), (1_000, 1_001, 7_900)];
        check(&steps, &[false, true, false]);
    }
}
