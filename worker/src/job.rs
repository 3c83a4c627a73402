//! A claimed run on its way through the worker, with all that ends when it does.

use std::time::Duration;

use futures_util::future::BoxFuture;
use holdpoint_executor::{Claimed, Control, Outcome};
use holdpoint_storage::{Lease, SharedClock, Store};
use tokio::{sync::OwnedSemaphorePermit, time::sleep};

use crate::leases::Hold;

/// The pause between two tries to hand a run back.
const PAUSE: Duration = Duration::from_millis(100);

/// An error of a layer around the executor.
pub(crate) type LayerError = Box<dyn std::error::Error + Send + Sync>;

/// The executor with the layers around it.
pub(crate) type Handler = std::sync::Arc<
    dyn Fn(Claimed) -> BoxFuture<'static, Result<Outcome, LayerError>> + Send + Sync,
>;

/// A claimed run with its slot and its place among the leases that are renewed; both are given
/// back when the job is dropped.
#[derive(Debug)]
pub(crate) struct Job {
    claimed: Claimed,
    kept: (Hold, OwnedSemaphorePermit),
}

impl Job {
    pub(crate) fn new(claimed: Claimed, hold: Hold, slot: OwnedSemaphorePermit) -> Self {
        Self { claimed, kept: (hold, slot) }
    }

    pub(crate) const fn claimed(&self) -> &Claimed {
        &self.claimed
    }

    /// Hands the run back unstarted.
    pub(crate) async fn hand_back(self, store: &dyn Store, clock: &SharedClock) {
        hand_back(store, &self.claimed.run.lease, &self.claimed.control, clock).await;
    }

    /// Executes the run. A run that a layer refused or cut short is handed back after a pause, so
    /// that it is not claimed and refused without end at full speed.
    pub(crate) async fn execute(
        self,
        handler: &Handler,
        store: &dyn Store,
        clock: &SharedClock,
    ) -> Result<Outcome, LayerError> {
        const REFUSED_PAUSE: Duration = Duration::from_secs(1);
        let Self { claimed, kept } = self;
        let (lease, control) = (claimed.run.lease.clone(), claimed.control.clone());
        let result = handler(claimed).await;
        if let Err(error) = &result {
            tracing::warn!(run = %lease.run, %error, "a layer ended the run's claim");
            tokio::select! {
                () = sleep(REFUSED_PAUSE) => {}
                () = drained(&control) => {}
            }
            hand_back(store, &lease, &control, clock).await;
        }
        drop(kept);
        result
    }
}

async fn drained(control: &Control) {
    while !control.told().is_draining {
        sleep(PAUSE).await;
    }
}

/// Hands a run back, claimable now; repeated while its lease lasts.
pub(crate) async fn hand_back(
    store: &dyn Store,
    lease: &Lease,
    control: &Control,
    clock: &SharedClock,
) {
    loop {
        match store.release(lease).await {
            Ok(_) => return,
            Err(error) if !control.may_act(clock.monotonic()) => {
                tracing::warn!(run = %lease.run, %error, "could not hand the run back in time");
                return;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}
