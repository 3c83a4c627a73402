//! How runs are executed: limits and times.

use std::time::Duration;

use holdpoint_graph::{Budget, limits::STEPS_MAX_DEFAULT};

/// The settings of an executor. Every field has a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// The most distinct tasks of a run that asks for no limit of its own. Default 1,000.
    pub max_steps: u64,
    /// What a run that names no budget may use up before a person is asked. Default: anything.
    pub budget: Budget,
    /// The longest that one attempt of a node may take. Default 5 min.
    pub node_timeout: Duration,
    /// How long a lease is. Default 10 s.
    pub lease: Duration,
    /// The part of a lease at its end in which the owner no longer acts. Default 2 s.
    pub margin: Duration,
    /// How long nodes may go on once their run is to be cancelled. Default 10 s.
    pub cancel_grace: Duration,
    /// A sleep in a node longer than this holds no worker. Default 2 s.
    pub sleep_in_place: Duration,
    /// Lost workers in a row without progress that end a run. Default 3.
    pub max_crashes: u32,
    /// Lost workers over a run's life that end it. Default 10.
    pub max_crashes_in_life: u32,
    /// After so long without a move a run's plan is stale. Default 24 h.
    pub stale_after: Duration,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        Self {
            max_steps: STEPS_MAX_DEFAULT,
            budget: Budget::default(),
            node_timeout: Duration::from_secs(300),
            lease: Duration::from_secs(10),
            margin: Duration::from_secs(2),
            cancel_grace: Duration::from_secs(10),
            sleep_in_place: Duration::from_secs(2),
            max_crashes: 3,
            max_crashes_in_life: 10,
            stale_after: Duration::from_secs(24 * 3_600),
        }
    }
}

impl ExecutorConfig {
    /// The lease in ms, as stores take it.
    #[must_use]
    pub fn lease_ms(&self) -> i64 {
        ms(self.lease)
    }

    /// How long after the send of its last good renewal an owner may act.
    #[must_use]
    pub fn hold(&self) -> Duration {
        self.lease.saturating_sub(self.margin)
    }
}

/// A duration in ms.
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
