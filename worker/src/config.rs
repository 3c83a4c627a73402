//! The settings of a worker, and the rules that hold between them.

use std::time::Duration;

use holdpoint_graph::{Code, QueueId, Refusal};
use holdpoint_storage::Retention;

/// The shortest lease; below it the times in between are too short for a store's round trip.
const LEASE_MIN: Duration = Duration::from_millis(100);
const LEASE_MAX: Duration = Duration::from_secs(3_600);
/// The most runs at once.
const CONCURRENCY_MAX: usize = 10_000;
/// The most runs of one claim.
const CLAIM_BATCH_MAX: usize = 100;
/// The most lost workers in a row that a run may be allowed.
const CRASHES_MAX: u32 = 10;

/// The settings of a worker. [`WorkerConfig::default`] has all of them;
/// [`WorkerConfig::with_lease`] scales the times that depend on the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// How many runs at once, 1 to 10,000. Default: 8 for each core, at least 4.
    pub concurrency: usize,
    /// The queues to claim from. Default: `default`.
    pub queues: Vec<QueueId>,
    /// How long a claim holds without a renewal, 100 ms to 1 h; under 1 s is for tests.
    /// Default: 10 s.
    pub lease: Duration,
    /// How often leases are renewed. Default: a fifth of the lease.
    pub renew: Duration,
    /// The part of a lease at its end in which the worker no longer acts; more than the clocks
    /// may be wrong. Default: a fifth of the lease.
    pub margin: Duration,
    /// How long after its end a lease is taken for lost; longer than it takes to end the
    /// processes of a node. Default: a tenth of the lease.
    pub grace: Duration,
    /// How often every worker looks for lost leases and due timers; jittered.
    /// Default: 0.5 s, or a tenth of a lease that is shorter than 5 s.
    pub tick: Duration,
    /// A gap between two ticks of all workers after which nothing is taken for lost for one
    /// lease. Default: 2 s, or half of a lease that is shorter than 4 s.
    pub hold_after: Duration,
    /// How long runs may go on after a drain began. Default: 30 s.
    pub drain: Duration,
    /// How long an idle worker trusts to be woken before it looks by itself. Default: 1 s.
    pub poll: Duration,
    /// The most runs of one claim, 1 to 100. Default: 16.
    pub claim_batch: usize,
    /// Lost workers in a row without progress that end a run, 1 to 10. Default: 3.
    pub max_crashes: u32,
    /// The waits before a run is offered again that lost 1, 2, 3 … workers in a row; the last
    /// one is also for all further ones. Default: none, 10 s, 60 s.
    pub loss_delays: Vec<Duration>,
    /// Whether the worker ends when there is nothing left to do. Default: false.
    pub exit_when_idle: bool,
    /// How long ended runs are kept.
    pub retention: Retention,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self::with_lease(Duration::from_secs(10))
    }
}

impl WorkerConfig {
    /// The defaults with another lease; the times that depend on it are scaled.
    ///
    /// # Panics
    /// Never: `default` is a queue's name.
    #[must_use]
    pub fn with_lease(lease: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            concurrency: (cores * 8).max(4),
            queues: vec![QueueId::new("default").expect("it is within the alphabet of ids")],
            lease,
            renew: lease / 5,
            margin: lease / 5,
            grace: lease / 10,
            tick: (lease / 10).min(Duration::from_millis(500)),
            hold_after: (lease / 2).min(Duration::from_secs(2)),
            drain: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            claim_batch: 16,
            max_crashes: 3,
            loss_delays: [0, 10, 60].map(Duration::from_secs).to_vec(),
            exit_when_idle: false,
            retention: Retention::default(),
        }
    }

    /// Checks each setting, and that the times fit together.
    ///
    /// # Errors
    /// `E_RANGE` for a setting that is out of its range, `E_CONFIG_TIMING` with the formula for
    /// times that do not go together.
    pub fn check(&self) -> Result<(), Refusal> {
        in_range("concurrency", self.concurrency, 1, CONCURRENCY_MAX)?;
        in_range("claim_batch", self.claim_batch, 1, CLAIM_BATCH_MAX)?;
        in_range("max_crashes", self.max_crashes, 1, CRASHES_MAX)?;
        if self.lease < LEASE_MIN || self.lease > LEASE_MAX {
            let why = format!("is {:?}, allowed are {LEASE_MIN:?} to 1 h", self.lease);
            return Err(Refusal::new(Code::Range, "lease", why));
        }
        for (field, is_empty) in
            [("queues", self.queues.is_empty()), ("loss_delays", self.loss_delays.is_empty())]
        {
            if is_empty {
                return Err(Refusal::new(
                    Code::Range,
                    field,
                    "is empty, it must name at least one",
                ));
            }
        }
        for (field, time) in [("renew", self.renew), ("tick", self.tick), ("poll", self.poll)] {
            if time.is_zero() {
                return Err(Refusal::new(Code::Range, field, "is 0, it must be longer"));
            }
        }
        self.check_timing()
    }

    fn check_timing(&self) -> Result<(), Refusal> {
        let Self { lease, renew, margin, tick, hold_after, .. } = self;
        let timing = |field: &str, why: String| Err(Refusal::new(Code::ConfigTiming, field, why));
        if *renew * 3 + *margin > *lease {
            return timing(
                "lease",
                format!(
                    "is {lease:?}, too short: 3 × renew + margin <= lease must hold, and that is \
                     3 × {renew:?} + {margin:?}"
                ),
            );
        }
        if *hold_after >= *lease - *renew * 2 {
            return timing(
                "hold_after",
                format!(
                    "is {hold_after:?}, too long: hold_after < lease - 2 × renew must hold, and \
                     that is {lease:?} - 2 × {renew:?}"
                ),
            );
        }
        if *tick * 2 > *hold_after {
            return timing(
                "tick",
                format!("is {tick:?}, too long: 2 × tick <= hold_after ({hold_after:?}) must hold"),
            );
        }
        Ok(())
    }

    /// How long after the send of its last good renewal a worker may act.
    #[must_use]
    pub fn hold(&self) -> Duration {
        self.lease.saturating_sub(self.margin)
    }

    /// How often the worker gives a sign of life.
    #[must_use]
    pub(crate) fn beat(&self) -> Duration {
        (self.lease / 5).min(Duration::from_secs(2))
    }

    /// After how long without a sign it counts as lost.
    pub(crate) fn lost_after(&self) -> Duration {
        self.lease + self.grace + self.beat() * 2
    }

    pub(crate) fn lease_ms(&self) -> i64 {
        ms(self.lease)
    }

    pub(crate) fn loss_delays_ms(&self) -> Vec<i64> {
        self.loss_delays.iter().copied().map(ms).collect()
    }
}

/// A duration in ms, as stores take it.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn in_range<T>(field: &str, value: T, min: T, max: T) -> Result<(), Refusal>
where
    T: PartialOrd + std::fmt::Display,
{
    if value < min || value > max {
        let why = format!("is {value}, allowed are {min} to {max}");
        return Err(Refusal::new(Code::Range, field, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut WorkerConfig), expect: &str) {
        let mut config = WorkerConfig::default();
        change(&mut config);
        let said = match config.check() {
            Ok(()) => "fine".to_owned(),
            Err(refusal) => format!("{} {refusal}", refusal.code()),
        };
        assert_eq!(said, expect);
    }

    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let config = WorkerConfig::default();
        assert_eq!(config.renew, Duration::from_secs(2));
        assert_eq!(config.margin, Duration::from_secs(2));
        assert_eq!(config.grace, Duration::from_secs(1));
        assert_eq!(config.tick, Duration::from_millis(500));
        assert_eq!(config.hold_after, Duration::from_secs(2));
        assert_eq!(config.hold(), Duration::from_secs(8));
        assert_eq!(config.loss_delays_ms(), [0, 10_000, 60_000]);
        assert!(config.concurrency >= 4);
        check(|_| {}, "fine");
    }

    #[test]
    fn every_scaled_lease_is_fine() {
        for lease_ms in [100, 250, 1_000, 4_000, 15_000, 3_600_000] {
            check(|c| *c = WorkerConfig::with_lease(Duration::from_millis(lease_ms)), "fine");
        }
    }

    #[test]
    fn a_setting_out_of_range_is_refused_with_its_value() {
        check(|c| c.concurrency = 0, "E_RANGE concurrency is 0, allowed are 1 to 10000");
        check(|c| c.concurrency = 10_001, "E_RANGE concurrency is 10001, allowed are 1 to 10000");
        check(|c| c.max_crashes = 11, "E_RANGE max_crashes is 11, allowed are 1 to 10");
        check(|c| c.claim_batch = 101, "E_RANGE claim_batch is 101, allowed are 1 to 100");
        check(|c| c.queues.clear(), "E_RANGE queues is empty, it must name at least one");
        check(|c| c.poll = Duration::ZERO, "E_RANGE poll is 0, it must be longer");
        check(
            |c| *c = WorkerConfig::with_lease(Duration::from_millis(99)),
            "E_RANGE lease is 99ms, allowed are 100ms to 1 h",
        );
    }

    #[test]
    fn times_that_do_not_go_together_are_refused_with_the_formula() {
        check(
            |c| c.renew = Duration::from_secs(3),
            "E_CONFIG_TIMING lease is 10s, too short: 3 × renew + margin <= lease must hold, and \
             that is 3 × 3s + 2s",
        );
        check(
            |c| c.hold_after = Duration::from_secs(6),
            "E_CONFIG_TIMING hold_after is 6s, too long: hold_after < lease - 2 × renew must \
             hold, and that is 10s - 2 × 2s",
        );
        check(
            |c| c.tick = Duration::from_millis(1_001),
            "E_CONFIG_TIMING tick is 1.001s, too long: 2 × tick <= hold_after (2s) must hold",
        );
    }
}
