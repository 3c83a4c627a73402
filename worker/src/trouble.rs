//! Store errors that a loop lives through: a pause that grows, and few lines in the log. When the
//! worker is unready for it, and when that is over, is said by its watch.

use std::time::{Duration, Instant};

use holdpoint_graph::Code;
use holdpoint_storage::{Random, SharedClock, StoreError};

use crate::health::{Health, Part};

/// The first and the longest pause before a call is repeated.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// One line in the log for a cause in this time, whichever loops it keeps.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// The troubles of one loop.
#[derive(Debug)]
pub(crate) struct Troubles {
    what: &'static str,
    part: Part,
    clock: SharedClock,
    health: Health,
    pause: Duration,
    since: Option<Instant>,
}

impl Troubles {
    pub(crate) fn new(what: &'static str, part: Part, clock: SharedClock, health: Health) -> Self {
        Self { what, part, clock, health, pause: PAUSE_MIN, since: None }
    }

    /// A call failed; answers how long to wait before the next one, with jitter.
    pub(crate) fn failed(&mut self, error: &StoreError) -> Duration {
        self.health.bad(self.part, error);
        let now = self.clock.monotonic();
        self.since.get_or_insert(now);
        let code = error.code();
        // The worker says of a reset what there is to say.
        if code != Code::StoreReset && self.health.may_log(code, LOG_EVERY) {
            tracing::warn!(%code, %error, "{} failed and is repeated", self.what);
        }
        let pause = self.pause.mul_f64(0.5 + Random.unit() / 2.0);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        pause
    }

    /// A call is made now.
    pub(crate) fn asked(&self) {
        self.health.asked(self.part);
    }

    /// What failed is not called for any more.
    pub(crate) fn moot(&mut self) {
        if self.since.take().is_some() {
            self.health.moot(self.part);
            self.pause = PAUSE_MIN;
        }
    }

    /// A call succeeded.
    pub(crate) fn over(&mut self) {
        self.health.good(self.part);
        if let Some(since) = self.since.take() {
            let lasted = self.clock.monotonic().saturating_duration_since(since);
            tracing::debug!(?lasted, "{} works again", self.what);
            self.pause = PAUSE_MIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdpoint_storage::SystemClock;

    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_start_anew() {
        let clock: SharedClock = Arc::new(SystemClock);
        let health = Health::new(Arc::clone(&clock), PAUSE_MAX);
        let mut troubles = Troubles::new("a test", Part::Claim, clock, health);
        let error = StoreError::Unavailable { cause: "gone".to_owned() };
        assert!(troubles.failed(&error) <= PAUSE_MIN);
        for _ in 0..10 {
            assert!(troubles.failed(&error) <= PAUSE_MAX);
        }
        assert!(troubles.failed(&error) >= PAUSE_MAX / 2);
        troubles.over();
        assert!(troubles.failed(&error) <= PAUSE_MIN);
    }
}
