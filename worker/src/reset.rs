//! A store that forgot everything: the worker says so once, and registers anew.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use holdpoint_storage::{SharedClock, StoreError};
use tokio::sync::Notify;

/// Each connection notices by itself; what comes within this time is the same reset.
const SAME: Duration = Duration::from_secs(30);

/// What the parts of a worker share about it.
#[derive(Debug)]
pub(crate) struct Reset {
    clock: SharedClock,
    said: Mutex<Option<Instant>>,
    noticed: Notify,
}

impl Reset {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, said: Mutex::default(), noticed: Notify::new() }
    }

    /// Takes note of an error; says whether it tells of a reset.
    pub(crate) fn is_told_by(&self, error: &StoreError) -> bool {
        if !matches!(error, StoreError::Reset { .. }) {
            return false;
        }
        let now = self.clock.monotonic();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|at| now.saturating_duration_since(at) > SAME) {
            *said = Some(now);
            let code = error.code();
            tracing::warn!(%code, %error, "the worker registers anew; its runs are gone");
        }
        self.noticed.notify_one();
        true
    }

    /// Returns after a reset was noticed. Cancel-safe.
    pub(crate) async fn noticed(&self) {
        self.noticed.notified().await;
    }
}
