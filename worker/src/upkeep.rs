//! The upkeep thread: an OS thread with a runtime and a store connection of its own, for what must
//! go on while nodes keep the worker's runtime busy: renewals, ticks, signs of life.

use std::{sync::Arc, thread};

use futures_util::future::BoxFuture;
use holdpoint_storage::{Store, StoreResult};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    health::Part,
    keeper::Keeper,
    maintain::{Maintain, Upkeep},
    trouble::Troubles,
    watch::Watch,
};

/// Opens a store. Called on the runtime that is to drive the store's connections.
pub type StoreFactory =
    Arc<dyn Fn() -> BoxFuture<'static, StoreResult<Arc<dyn Store>>> + Send + Sync>;

/// The handle of the running thread. Dropping it ends the thread, without waiting for that.
pub(crate) struct UpkeepThread {
    /// Resolves when the store is open; fails when the thread ended before.
    pub(crate) ready: oneshot::Receiver<()>,
    /// Resolves or fails when the thread has ended.
    pub(crate) ended: oneshot::Receiver<()>,
    stop_upkeep: CancellationToken,
    stop_keeper: CancellationToken,
}

impl UpkeepThread {
    /// Starts the thread.
    pub(crate) fn start(open: StoreFactory, upkeep: Upkeep) -> std::io::Result<Self> {
        let (stop_upkeep, stop_keeper) = (CancellationToken::new(), CancellationToken::new());
        let (is_ready, ready) = oneshot::channel();
        let (has_ended, ended) = oneshot::channel();
        let stops = (stop_upkeep.clone(), stop_keeper.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let body = move || {
            runtime.block_on(keep_up(open, upkeep, stops, is_ready));
            // Nobody may listen any more.
            let _ = has_ended.send(());
        };
        thread::Builder::new().name("holdpoint-upkeep".to_owned()).spawn(body)?;
        Ok(Self { ready, ended, stop_upkeep, stop_keeper })
    }

    /// Ends the upkeep, the farewell with it, and then the renewals.
    pub(crate) async fn stop(mut self) {
        self.stop_upkeep.cancel();
        let _ = (&mut self.ended).await;
    }
}

impl Drop for UpkeepThread {
    fn drop(&mut self) {
        self.stop_upkeep.cancel();
        self.stop_keeper.cancel();
    }
}

async fn keep_up(
    open: StoreFactory,
    upkeep: Upkeep,
    (stop_upkeep, stop_keeper): (CancellationToken, CancellationToken),
    is_ready: oneshot::Sender<()>,
) {
    let watch = Watch {
        health: upkeep.health.clone(),
        clock: Arc::clone(&upkeep.clock),
        every: upkeep.config.poll / 4,
        changed: Arc::clone(&upkeep.changed),
    };
    // It ends with the runtime of this thread.
    tokio::spawn(watch.run());
    let Some(store) = open_patiently(open, &upkeep, &stop_upkeep).await else { return };
    let keeper = Keeper::new(
        Arc::clone(&store),
        upkeep.leases.clone(),
        Arc::clone(&upkeep.clock),
        upkeep.health.clone(),
        &upkeep.config,
    );
    let keeper = tokio::spawn(keeper.run(stop_keeper.clone()));
    // The worker may have gone meanwhile.
    let _ = is_ready.send(());
    let _stops_keeper = stop_keeper.drop_guard();
    tokio::select! {
        () = Maintain::new(store, upkeep).run(stop_upkeep) => {}
        // Renewals ended by a panic: without them there is no worker.
        _ = keeper => {}
    }
}

/// Opens the store; one that does not answer is tried until the worker ends.
async fn open_patiently(
    open: StoreFactory,
    upkeep: &Upkeep,
    stop: &CancellationToken,
) -> Option<Arc<dyn Store>> {
    let (clock, health) = (Arc::clone(&upkeep.clock), upkeep.health.clone());
    let mut troubles = Troubles::new("opening the upkeep's store", Part::Renew, clock, health);
    loop {
        let error = tokio::select! {
            () = stop.cancelled() => return None,
            opened = open() => match opened {
                Ok(store) => {
                    troubles.over();
                    return Some(store);
                }
                Err(error) => error,
            },
        };
        tokio::time::sleep(troubles.failed(&error)).await;
    }
}
