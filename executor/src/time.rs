//! The store's time, as a worker knows it: the last time the store told, and what passed since by
//! the local monotonic clock. A worker's wall clock is never asked.

use std::{sync::Mutex, sync::PoisonError, time::Instant};

use holdpoint_storage::SharedClock;

/// The store's time between two of its replies.
#[derive(Debug)]
pub struct StoreTime {
    clock: SharedClock,
    told: Mutex<(i64, Instant)>,
}

impl StoreTime {
    /// A time that the store told just now.
    #[must_use]
    pub fn new(clock: SharedClock, now_ms: i64) -> Self {
        let told = Mutex::new((now_ms, clock.monotonic()));
        Self { clock, told }
    }

    /// The store told its time again.
    pub fn told(&self, now_ms: i64) {
        let now = self.clock.monotonic();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = (now_ms, now);
    }

    /// The store's time, in ms since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let (told_ms, at) = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = self.clock.monotonic().saturating_duration_since(at);
        told_ms.saturating_add(crate::config::ms(passed))
    }

    /// The local monotonic time.
    #[must_use]
    pub fn monotonic(&self) -> Instant {
        self.clock.monotonic()
    }
}
