//! Who waits for what, in this process: workers for lanes, followers for runs.
//!
//! ```text
//! wait()/changed() ── register ──▶ Wake ◀── told after COMMIT ── writer
//!                                   ▲
//!                                   └────── `PRAGMA data_version` moved: another process wrote
//! ```

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use holdpoint_graph::RunId;
use holdpoint_storage::Lane;
use tokio::sync::Notify;

/// The list of those who wait.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    waiters: Mutex<Waiters>,
    /// The length of the list, for the writer to look at without the lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiters {
    next: u64,
    all: HashMap<u64, (Wanted, Arc<Bell>)>,
}

#[derive(Debug)]
enum Wanted {
    Lanes(Vec<Lane>),
    Run(RunId),
}

#[derive(Debug, Default)]
struct Bell {
    notify: Notify,
    /// Whether what was waited for has happened for certain.
    is_certain: AtomicBool,
}

/// One who waits; off the list when dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'w> {
    wake: &'w Wake,
    id: u64,
    bell: Arc<Bell>,
}

impl Wake {
    pub(crate) fn for_lanes(&self, lanes: &[Lane]) -> Waiting<'_> {
        self.register(Wanted::Lanes(lanes.to_vec()))
    }

    pub(crate) fn for_run(&self, run: &RunId) -> Waiting<'_> {
        self.register(Wanted::Run(run.clone()))
    }

    fn register(&self, wanted: Wanted) -> Waiting<'_> {
        let bell = Arc::new(Bell::default());
        let mut waiters = self.lock();
        let id = waiters.next;
        waiters.next += 1;
        waiters.all.insert(id, (wanted, Arc::clone(&bell)));
        self.count.store(waiters.all.len(), Ordering::Release);
        Waiting { wake: self, id, bell }
    }

    /// Whether anybody waits.
    pub(crate) fn has_waiters(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Tells those who wait for one of these lanes or runs.
    pub(crate) fn tell(&self, lanes: &[Lane], is_run: impl Fn(&RunId) -> bool) {
        for (wanted, bell) in self.lock().all.values() {
            let is_wanted = match wanted {
                Wanted::Lanes(wanted) => wanted.iter().any(|lane| lanes.contains(lane)),
                Wanted::Run(run) => is_run(run),
            };
            if is_wanted {
                bell.is_certain.store(true, Ordering::Release);
                bell.notify.notify_one();
            }
        }
    }

    /// Tells everybody that something may have happened.
    pub(crate) fn tell_all(&self) {
        for (_, bell) in self.lock().all.values() {
            bell.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        // Whoever panicked while holding the lock left a list that is still one.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    /// Waits to be told. True: what was waited for has happened; false: it may have.
    pub(crate) async fn told(&self) -> bool {
        self.bell.notify.notified().await;
        self.bell.is_certain.load(Ordering::Acquire)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiters = self.wake.lock();
        waiters.all.remove(&self.id);
        self.wake.count.store(waiters.all.len(), Ordering::Release);
    }
}
