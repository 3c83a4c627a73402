//! Says when the worker stops taking runs because of the store, and when it takes them again: one
//! line in the log for each change, and a sign of life that tells the store.
//!
//! It looks at the worker's health instead of being told, because a call that hangs tells nobody.

use std::{sync::Arc, time::Duration};

use holdpoint_storage::SharedClock;
use tokio::{
    sync::Notify,
    time::{MissedTickBehavior, interval},
};

use crate::Health;

/// Watches the health of a worker.
pub(crate) struct Watch {
    pub(crate) health: Health,
    pub(crate) clock: SharedClock,
    /// How often it looks.
    pub(crate) every: Duration,
    /// Raised at each change.
    pub(crate) changed: Arc<Notify>,
}

impl Watch {
    /// Watches until it is dropped. Cancel-safe.
    pub(crate) async fn run(self) {
        let mut look = interval(self.every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut since = None;
        loop {
            look.tick().await;
            match (self.health.trouble(), since) {
                (Some(trouble), None) => {
                    tracing::warn!(trouble, "not ready: no runs are taken");
                    since = Some(self.clock.monotonic());
                    self.changed.notify_one();
                }
                (None, Some(began)) => {
                    let lasted = self.clock.monotonic().saturating_duration_since(began);
                    tracing::info!(?lasted, "ready again");
                    since = None;
                    self.changed.notify_one();
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }
}
