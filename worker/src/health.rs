//! Whether a worker does its work: shared with whoever serves a readiness probe.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use holdpoint_storage::{SharedClock, StoreError};

/// A part of the worker that talks to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The claim loop.
    Claim,
    /// The lease keeper.
    Renew,
    /// The upkeep: ticks and signs of life.
    Tick,
}

/// The health of a worker. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Health {
    clock: SharedClock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_draining: bool,
    parts: [Seen; 3],
}

#[derive(Debug, Clone, Default)]
struct Seen {
    good_at: Option<Instant>,
    error: Option<String>,
}

/// What a worker's health was at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// Whether the worker takes runs: it does not drain, it has reached the store, and the last
    /// call of each of its parts succeeded.
    pub is_ready: bool,
    /// Whether it drains.
    pub is_draining: bool,
    /// How long ago the last good claim was. A worker without a free slot claims nothing.
    pub since_claim: Option<Duration>,
    /// How long ago the last good tick was.
    pub since_tick: Option<Duration>,
    /// How long ago the last good renewal was. A worker without a run renews nothing.
    pub since_renewal: Option<Duration>,
    /// What failed last and has not succeeded since.
    pub error: Option<String>,
}

impl Health {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// The health now.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        let now = self.clock.monotonic();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let [claim, renew, tick] = &state.parts;
        let since = |seen: &Seen| seen.good_at.map(|at| now.saturating_duration_since(at));
        let error = state.parts.iter().find_map(|seen| seen.error.clone());
        HealthReport {
            is_ready: !state.is_draining && error.is_none() && claim.good_at.is_some(),
            is_draining: state.is_draining,
            since_claim: since(claim),
            since_tick: since(tick),
            since_renewal: since(renew),
            error,
        }
    }

    pub(crate) fn draining(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_draining = true;
    }

    pub(crate) fn good(&self, part: Part) {
        let now = self.clock.monotonic();
        self.change(part, |seen| *seen = Seen { good_at: Some(now), error: None });
    }

    pub(crate) fn bad(&self, part: Part, error: &StoreError) {
        self.change(part, |seen| seen.error = Some(format!("{}: {error}", error.code())));
    }

    fn change(&self, part: Part, change: impl FnOnce(&mut Seen)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let [claim, renew, tick] = &mut state.parts;
        change(match part {
            Part::Claim => claim,
            Part::Renew => renew,
            Part::Tick => tick,
        });
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_storage::SystemClock;

    use super::*;

    #[test]
    fn ready_means_that_nothing_fails_and_claims_have_begun() {
        let health = Health::new(Arc::new(SystemClock));
        assert!(!health.report().is_ready);
        health.good(Part::Claim);
        assert!(health.report().is_ready);
        health.bad(Part::Tick, &StoreError::Unavailable { cause: "gone".to_owned() });
        let report = health.report();
        assert!(!report.is_ready);
        assert_eq!(
            report.error.as_deref(),
            Some("E_STORE_UNAVAILABLE: the store is not available: gone")
        );
        health.good(Part::Tick);
        assert!(health.report().is_ready);
        health.draining();
        assert!(!health.report().is_ready);
    }
}
