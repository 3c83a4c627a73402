//! The leases that this worker holds: filled by whoever claims, read by the lease keeper, and told
//! by the drain.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_executor::Control;
use holdpoint_storage::Lease;
use tokio::sync::Notify;

/// The leases of a worker. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    held: HashMap<u64, (Lease, Control)>,
    is_draining: bool,
    is_aborting: bool,
}

/// A lease with the handle of its run.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) number: u64,
    pub(crate) lease: Lease,
    pub(crate) control: Control,
}

/// Keeps a lease among those that are renewed, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    leases: Leases,
    number: u64,
}

impl Leases {
    /// Adds a lease. Its run is told at once what all runs were told.
    pub(crate) fn hold(&self, lease: Lease, control: Control) -> Hold {
        let mut state = self.state();
        if state.is_draining {
            control.drain();
        }
        if state.is_aborting {
            control.abort();
        }
        let number = state.next;
        state.next += 1;
        state.held.insert(number, (lease, control));
        Hold { leases: self.clone(), number }
    }

    /// All leases.
    pub(crate) fn all(&self) -> Vec<Held> {
        let state = self.state();
        let held = state.held.iter().map(|(number, (lease, control))| Held {
            number: *number,
            lease: lease.clone(),
            control: control.clone(),
        });
        held.collect()
    }

    /// Calls `see` for each lease, without copying them.
    pub(crate) fn each(&self, mut see: impl FnMut(&Lease, &Control)) {
        for (lease, control) in self.state().held.values() {
            see(lease, control);
        }
    }

    /// Whether a lease is still held.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.state().held.contains_key(&number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().held.is_empty()
    }

    /// Whether the runs were told to start no node any more.
    #[cfg(feature = "planted")]
    pub(crate) fn is_draining(&self) -> bool {
        self.state().is_draining
    }

    /// Tells all runs, and those to come, to start no node any more.
    pub(crate) fn drain(&self) {
        let mut state = self.state();
        state.is_draining = true;
        state.held.values().for_each(|(_, control)| control.drain());
    }

    /// Tells all runs, and those to come, to hand back at once.
    pub(crate) fn abort(&self) {
        let mut state = self.state();
        state.is_aborting = true;
        state.held.values().for_each(|(_, control)| control.abort());
    }

    /// Returns when no lease is held. Cancel-safe.
    pub(crate) async fn emptied(&self) {
        loop {
            let emptied = self.0.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.leases.state();
            state.held.remove(&self.number);
            state.held.is_empty()
        };
        if is_last {
            self.leases.0.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_graph::{Pair, RunId, WorkerId};
    use holdpoint_storage::{Clock as _, SystemClock};

    use super::*;

    fn lease(run: &str) -> Lease {
        Lease {
            run: RunId::new(run).unwrap(),
            pair: Pair { epoch: 1, nonce: "n".to_owned() },
            worker: WorkerId::new("w").unwrap(),
        }
    }

    #[tokio::test]
    async fn a_lease_is_held_until_its_hold_is_dropped() {
        let leases = Leases::default();
        leases.emptied().await;
        let control = Control::new(SystemClock.monotonic());
        let hold = leases.hold(lease("a"), control.clone());
        let other = leases.hold(lease("a"), control);
        assert_eq!(leases.all().len(), 2);
        let waits = tokio::spawn({
            let leases = leases.clone();
            async move { leases.emptied().await }
        });
        drop(hold);
        assert!(!leases.is_empty());
        drop(other);
        waits.await.unwrap();
    }

    #[test]
    fn who_comes_late_is_told_what_all_were_told() {
        let leases = Leases::default();
        let early = Control::new(SystemClock.monotonic());
        let _early = leases.hold(lease("a"), early.clone());
        leases.drain();
        leases.abort();
        let late = Control::new(SystemClock.monotonic());
        let _late = leases.hold(lease("b"), late.clone());
        for control in [early, late] {
            assert!(control.told().is_draining && control.told().is_aborted);
        }
    }
}
