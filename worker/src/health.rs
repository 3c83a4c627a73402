//! Whether a worker does its work: shared with whoever serves a readiness probe.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use holdpoint_graph::Code;
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

impl Part {
    const ALL: [Self; 3] = [Self::Claim, Self::Renew, Self::Tick];

    /// How patient one is with its calls, as a multiple: the upkeep has more to do at once, and
    /// what it does may come late.
    fn patience(self) -> u32 {
        match self {
            Self::Claim => 1,
            Self::Renew | Self::Tick => 4,
        }
    }

    /// What its calls are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claim => "a claim",
            Self::Renew => "a lease renewal",
            Self::Tick => "the upkeep",
        }
    }
}

/// The health of a worker, as its own calls of the store went: a connection that nothing is
/// claimed over says nothing of whether the worker works. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Health {
    clock: SharedClock,
    patience: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_draining: bool,
    parts: [Seen; 3],
    logged: Vec<(Code, Instant)>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    /// Since when a call waits for its answer.
    asked_at: Option<Instant>,
    good_at: Option<Instant>,
    error: Option<String>,
}

/// What a worker's health was at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// Whether the worker takes runs: it does not drain, it has reached the store, the last call
    /// of each of its parts succeeded, and none waits too long for its answer.
    pub is_ready: bool,
    /// Whether it drains.
    pub is_draining: bool,
    /// How long ago the last good claim was. A worker without a free slot claims nothing.
    pub since_claim: Option<Duration>,
    /// How long ago the last good tick was.
    pub since_tick: Option<Duration>,
    /// How long ago the last good renewal was. A worker without a run renews nothing.
    pub since_renewal: Option<Duration>,
    /// What failed last and has not succeeded since, or waits too long; begins with the code.
    pub error: Option<String>,
}

impl Health {
    /// `patience`: how long a claim may wait for its answer before that is a trouble.
    pub(crate) fn new(clock: SharedClock, patience: Duration) -> Self {
        Self { clock, patience, state: Arc::default() }
    }

    /// The health now.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        let now = self.clock.monotonic();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let [claim, renew, tick] = &state.parts;
        let since = |seen: &Seen| seen.good_at.map(|at| now.saturating_duration_since(at));
        let error = Part::ALL.iter().zip(&state.parts).find_map(|(part, seen)| {
            let waits = seen.asked_at.map(|at| now.saturating_duration_since(at));
            // Before its first answer the worker is starting, and not ready anyway.
            let patience = self.patience * part.patience();
            let late = waits.filter(|waits| seen.good_at.is_some() && *waits >= patience);
            let late = late.map(|waits| {
                let code = Code::StoreUnavailable;
                format!("{code}: {} has no answer for {:.1} s", part.name(), waits.as_secs_f64())
            });
            seen.error.clone().or(late)
        });
        HealthReport {
            is_ready: !state.is_draining && error.is_none() && claim.good_at.is_some(),
            is_draining: state.is_draining,
            since_claim: since(claim),
            since_tick: since(tick),
            since_renewal: since(renew),
            error,
        }
    }

    /// Why the worker takes no runs although it should.
    pub(crate) fn trouble(&self) -> Option<String> {
        let report = self.report();
        report.error.filter(|_| !report.is_draining)
    }

    pub(crate) fn draining(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_draining = true;
    }

    /// A call is made.
    pub(crate) fn asked(&self, part: Part) {
        let now = self.clock.monotonic();
        self.change(part, |seen| seen.asked_at = Some(now));
    }

    /// There is nothing to call for any more, so nothing fails.
    pub(crate) fn moot(&self, part: Part) {
        self.change(part, |seen| (seen.asked_at, seen.error) = (None, None));
    }

    pub(crate) fn good(&self, part: Part) {
        let now = self.clock.monotonic();
        self.change(part, |seen| {
            *seen = Seen { asked_at: None, good_at: Some(now), error: None };
        });
    }

    pub(crate) fn bad(&self, part: Part, error: &StoreError) {
        let text = format!("{}: {}: {error}", error.code(), part.name());
        self.change(part, |seen| (seen.asked_at, seen.error) = (None, Some(text)));
    }

    /// Whether an error of this code was not logged for so long; then it counts as logged now.
    /// One outage fails the calls of all parts.
    pub(crate) fn may_log(&self, code: Code, every: Duration) -> bool {
        let now = self.clock.monotonic();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.logged.retain(|(_, at)| now.saturating_duration_since(*at) < every);
        let may_log = !state.logged.iter().any(|(known, _)| *known == code);
        if may_log {
            state.logged.push((code, now));
        }
        may_log
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
        let health = Health::new(Arc::new(SystemClock), Duration::from_secs(60));
        assert!(!health.report().is_ready);
        health.good(Part::Claim);
        assert!(health.report().is_ready);
        health.bad(Part::Tick, &StoreError::Unavailable { cause: "gone".to_owned() });
        let report = health.report();
        assert!(!report.is_ready);
        assert_eq!(
            report.error.as_deref(),
            Some("E_STORE_UNAVAILABLE: the upkeep: the store is not available: gone")
        );
        health.good(Part::Tick);
        assert!(health.report().is_ready);
        health.draining();
        assert!(!health.report().is_ready);
    }

    #[test]
    fn a_call_without_an_answer_is_a_trouble_until_it_has_one() {
        let health = Health::new(Arc::new(SystemClock), Duration::ZERO);
        health.good(Part::Claim);
        assert!(health.report().is_ready);
        health.asked(Part::Claim);
        assert_eq!(
            health.report().error.as_deref(),
            Some("E_STORE_UNAVAILABLE: a claim has no answer for 0.0 s")
        );
        health.good(Part::Claim);
        assert!(health.report().is_ready);
    }

    #[test]
    fn what_nothing_is_called_for_any_more_does_not_fail() {
        let health = Health::new(Arc::new(SystemClock), Duration::from_secs(60));
        health.good(Part::Claim);
        health.bad(Part::Renew, &StoreError::Unavailable { cause: "gone".to_owned() });
        assert!(!health.report().is_ready);
        health.moot(Part::Renew);
        assert!(health.report().is_ready);
    }
}
