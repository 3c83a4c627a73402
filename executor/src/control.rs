//! What the world tells a run while it executes: the lease is lost, cancel, drain, answers came.
//!
//! One [`Control`] per claimed run. The lease keeper and the worker write it, the run loop waits
//! on it, and every node start asks it for leave.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::sync::watch;

/// What a run was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Until when the owner may act, by local monotonic time.
    pub deadline: Instant,
    /// The lease is lost: nothing may be started or written any more.
    pub is_lost: bool,
    /// The run is to be cancelled.
    pub is_cancelled: bool,
    /// No node is to be started; the run is handed back when what runs has ended.
    pub is_draining: bool,
    /// The run is handed back at once; what runs is dropped.
    pub is_aborted: bool,
    /// Raised by one whenever answers wait in the inbox.
    pub inbox: u64,
}

/// The handle through which a run is told. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    told: Arc<watch::Sender<Told>>,
    stopping: Arc<AtomicBool>,
}

impl Control {
    /// A control whose owner may act until `deadline`.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        let told = Told {
            deadline,
            is_lost: false,
            is_cancelled: false,
            is_draining: false,
            is_aborted: false,
            inbox: 0,
        };
        Self { told: Arc::new(watch::Sender::new(told)), stopping: Arc::default() }
    }

    /// What the run was told so far.
    #[must_use]
    pub fn told(&self) -> Told {
        *self.told.borrow()
    }

    /// A receiver that sees every later change.
    pub(crate) fn watch(&self) -> watch::Receiver<Told> {
        self.told.subscribe()
    }

    /// The lease goes on: the owner may act until `deadline`, unless it was lost meanwhile.
    pub fn extend(&self, deadline: Instant) {
        self.told.send_if_modified(|told| {
            told.deadline = told.deadline.max(deadline);
            false
        });
    }

    /// The lease is lost.
    pub fn lose(&self) {
        self.stop_nodes();
        self.told.send_modify(|told| told.is_lost = true);
    }

    /// The run is to be cancelled.
    pub fn cancel(&self) {
        self.stop_nodes();
        self.told.send_if_modified(|told| !std::mem::replace(&mut told.is_cancelled, true));
    }

    /// No node is to be started any more.
    pub fn drain(&self) {
        self.told.send_if_modified(|told| !std::mem::replace(&mut told.is_draining, true));
    }

    /// The run is handed back at once.
    pub fn abort(&self) {
        self.stop_nodes();
        self.told.send_modify(|told| told.is_aborted = true);
    }

    /// Answers wait in the run's inbox.
    pub fn has_inbox(&self) {
        self.told.send_modify(|told| told.inbox += 1);
    }

    /// Whether the owner may start something at `now`.
    #[must_use]
    pub fn may_act(&self, now: Instant) -> bool {
        let told = self.told.borrow();
        !told.is_lost && now < told.deadline
    }

    fn stop_nodes(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether nodes should stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns when nodes should stop. Cancel-safe.
    pub(crate) async fn stopped(&self) {
        let mut told = self.told.subscribe();
        let stop = |told: &Told| told.is_lost || told.is_cancelled || told.is_aborted;
        // The sender lives as long as `self`, so the wait ends only with the condition.
        let _ = told.wait_for(stop).await;
    }
}
