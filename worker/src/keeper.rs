//! The lease keeper: renews all leases of the worker, and tells the runs what the store answers.
//!
//! It runs on the upkeep thread, so that a node that spins cannot starve it. A renewal that fails
//! is never taken for a lost lease: it is repeated until the local deadline, and a new attempt
//! does not wait for one that hangs.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use holdpoint_graph::RunId;
use holdpoint_storage::{Renewal, SharedClock, Store, StoreResult};
use tokio::time::{Instant as Timer, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    WorkerConfig,
    config::ms,
    health::{Health, Part},
    leases::{Held, Leases},
    maintain::some_of,
    trouble::Troubles,
};

/// Attempts under way at once; each may hang in a store that stalls.
const ATTEMPTS_MAX: usize = 4;
/// The most leases of one call, so that no call holds the store for long.
const LEASES_MAX: usize = 500;
/// How often, at least, deadlines are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The keeper of a worker's leases.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    leases: Leases,
    clock: SharedClock,
    times: Times,
    troubles: Troubles,
    /// Leases that a renewal found fenced, and when. The run may just have ended: its last commit
    /// and the renewal crossed. Those that are still held at the next look are lost.
    fenced: HashMap<u64, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    lease_ms: i64,
    renew: Duration,
    hold: Duration,
    look: Duration,
}

/// One call that ended.
struct Attempt {
    sent: Instant,
    held: Vec<Held>,
    reply: StoreResult<Vec<Renewal>>,
}

impl Keeper {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        leases: Leases,
        clock: SharedClock,
        health: Health,
        config: &WorkerConfig,
    ) -> Self {
        let times = Times {
            lease_ms: ms(config.lease),
            renew: config.renew,
            hold: config.hold(),
            look: (config.renew / 4).min(LOOK_EVERY),
        };
        let troubles = Troubles::new("a lease renewal", Part::Renew, Arc::clone(&clock), health);
        Self { store, leases, clock, times, troubles, fenced: HashMap::new() }
    }

    /// Keeps the leases until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut attempts = FuturesUnordered::new();
        let mut next = Timer::now() + self.times.renew;
        let mut look = interval(self.times.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            #[cfg(feature = "planted")]
            if self.leases.is_draining()
                && holdpoint_storage::Planted::NoRenewalInDrain.is_at_work()
            {
                return;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(attempt) = attempts.next() => {
                    if let Some(pause) = self.take(attempt) {
                        next = next.min(Timer::now() + pause);
                    }
                }
                () = sleep_until(next), if attempts.len() < ATTEMPTS_MAX => {
                    next = Timer::now() + self.times.renew;
                    let held = self.leases.all();
                    if held.is_empty() && attempts.is_empty() {
                        self.troubles.moot();
                    }
                    for held in held.chunks(LEASES_MAX) {
                        attempts.push(self.renew(held.to_vec()));
                    }
                }
                // Without a lease there is nothing to look at before the next turn.
                _ = look.tick(), if !self.leases.is_empty() => self.look(),
            }
        }
    }

    fn renew(&self, held: Vec<Held>) -> impl Future<Output = Attempt> + use<> {
        let (store, lease_ms) = (Arc::clone(&self.store), self.times.lease_ms);
        // A deadline counts from before the call: the store may have taken it at once.
        let sent = self.clock.monotonic();
        async move {
            let leases: Vec<_> = held.iter().map(|held| held.lease.clone()).collect();
            let reply = store.renew(&leases, lease_ms).await;
            Attempt { sent, held, reply }
        }
    }

    /// Tells the runs what the store answered; after a failure, when to try again.
    fn take(&mut self, attempt: Attempt) -> Option<Duration> {
        let renewals = match attempt.reply {
            Ok(renewals) => renewals,
            Err(error) => return Some(self.troubles.failed(&error)),
        };
        self.troubles.over();
        for (held, renewal) in attempt.held.iter().zip(renewals) {
            match renewal {
                Renewal::Kept { cancel, has_inbox } => {
                    held.control.extend(attempt.sent + self.times.hold);
                    if cancel {
                        held.control.cancel();
                    }
                    if has_inbox {
                        held.control.has_inbox();
                    }
                }
                Renewal::Fenced => {
                    self.fenced.entry(held.number).or_insert_with(|| self.clock.monotonic());
                }
            }
        }
        None
    }

    /// Ends the runs whose lease is gone: taken by another, or past the local deadline.
    fn look(&mut self) {
        let now = self.clock.monotonic();
        let mut lost = Vec::new();
        self.leases.each(|lease, control| {
            let told = control.told();
            if !told.is_lost && now >= told.deadline {
                lost.push((lease.run.clone(), control.clone()));
            }
        });
        if !lost.is_empty() {
            let runs: Vec<RunId> = lost.iter().map(|(run, _)| run.clone()).collect();
            let (count, runs) = (runs.len(), some_of(&runs));
            tracing::warn!(count, runs, "leases were not renewed in time; their runs are given up");
        }
        lost.iter().for_each(|(_, control)| control.lose());
        if self.fenced.is_empty() {
            return;
        }
        let pause = self.times.look;
        let (old, young) = std::mem::take(&mut self.fenced)
            .into_iter()
            .partition(|(_, since)| now.saturating_duration_since(*since) >= pause);
        self.fenced = young;
        let old: HashMap<u64, Instant> = old;
        if old.is_empty() || !old.keys().any(|number| self.leases.has(*number)) {
            return;
        }
        let mut taken = self.leases.all();
        taken.retain(|held| old.contains_key(&held.number) && !held.control.told().is_lost);
        if !taken.is_empty() {
            let runs: Vec<RunId> = taken.iter().map(|held| held.lease.run.clone()).collect();
            let (count, runs) = (runs.len(), some_of(&runs));
            tracing::warn!(count, runs, "leases are not this worker's any more; given up");
        }
        taken.iter().for_each(|held| held.control.lose());
    }
}
