//! The lease of a run that executes without a worker.

use std::sync::Arc;

use holdpoint_storage::{SharedClock, Store};

use crate::{Control, ExecutorConfig};

/// Renews the lease until it is lost; returns then.
pub(super) async fn keep_lease(
    store: Arc<dyn Store>,
    lease: holdpoint_storage::Lease,
    control: Control,
    config: ExecutorConfig,
    clock: &SharedClock,
) {
    loop {
        tokio::time::sleep(config.lease / 5).await;
        let sent = clock.monotonic();
        match store.renew(std::slice::from_ref(&lease), config.lease_ms()).await.as_deref() {
            Ok([holdpoint_storage::Renewal::Kept { cancel, has_inbox }]) => {
                control.extend(sent + config.hold());
                if *cancel {
                    control.cancel();
                }
                if *has_inbox {
                    control.has_inbox();
                }
            }
            // The executor learns by its own commit whether the run has ended in order.
            Ok(_) => control.lose(),
            Err(error) => tracing::warn!(run = %lease.run, %error, "renewal failed"),
        }
        if !control.may_act(clock.monotonic()) {
            control.lose();
            return std::future::pending().await;
        }
    }
}
