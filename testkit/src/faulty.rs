//! A real store behind a plan of faults: calls that fail, replies that are lost, calls that hang.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdpoint_graph::RequestId;
use holdpoint_storage::{Store, StoreError, StoreResult};

use crate::between::{Between, Call, Middle};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call goes through.
    Pass,
    /// The store does not get it: it is not available.
    Refuse,
    /// The store does it, and the reply is lost.
    LoseReply,
    /// The store does it, and the reply comes so much later.
    DelayReply(Duration),
    /// The store does not get it, and there never is a reply.
    HangBefore,
    /// The store does it, and there never is a reply.
    HangAfter,
}

/// Decides the fault of a call by its name (the trait's method) and its number among those of
/// that name, from 1.
pub type Plan = Box<dyn FnMut(&'static str, u64) -> Fault + Send>;

/// A store with a plan of faults.
pub type FaultyStore = Between<Faults>;

/// A plan of faults, and what it met.
pub struct Faults {
    plan: Mutex<Plan>,
    counts: Counts,
    done: Counts,
}

type Counts = Mutex<BTreeMap<&'static str, u64>>;

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl FaultyStore {
    /// `inner` behind `plan`.
    pub fn new(
        inner: Arc<dyn Store>,
        plan: impl FnMut(&'static str, u64) -> Fault + Send + 'static,
    ) -> Self {
        let plan: Mutex<Plan> = Mutex::new(Box::new(plan));
        Self::of(inner, Faults { plan, counts: Mutex::default(), done: Mutex::default() })
    }

    /// Replaces the plan.
    pub fn set_plan(&self, plan: impl FnMut(&'static str, u64) -> Fault + Send + 'static) {
        *self.middle.plan.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(plan);
    }

    /// How often a method was called.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        look_up(&self.middle.counts, name)
    }

    /// How many calls of a method the store behind has answered.
    #[must_use]
    pub fn done(&self, name: &str) -> u64 {
        look_up(&self.middle.done, name)
    }
}

impl Faults {
    fn fault(&self, name: &'static str) -> Fault {
        let number = count_up(&self.counts, name);
        (self.plan.lock().unwrap_or_else(PoisonError::into_inner))(name, number)
    }
}

impl Middle for Faults {
    async fn pass<T: Send + Sync + 'static>(
        &self,
        _: &dyn Store,
        Call { name, .. }: Call<'_>,
        work: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let fault = self.fault(name);
        let work = async {
            let reply = work.await;
            count_up(&self.done, name);
            reply
        };
        match fault {
            Fault::Pass => work.await,
            Fault::Refuse => {
                Err(StoreError::Unavailable { cause: format!("the plan refuses {name}") })
            }
            Fault::HangBefore => std::future::pending().await,
            Fault::LoseReply => {
                work.await?;
                let request = RequestId::new("lost-reply")?;
                let cause = format!("the plan lost the reply of {name}");
                Err(StoreError::UnknownOutcome { request, cause })
            }
            Fault::DelayReply(delay) => {
                let reply = work.await;
                tokio::time::sleep(delay).await;
                reply
            }
            Fault::HangAfter => {
                work.await?;
                std::future::pending().await
            }
        }
    }
}

fn count_up(counts: &Counts, name: &'static str) -> u64 {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(name).or_insert(0);
    *count += 1;
    *count
}

fn look_up(counts: &Counts, name: &str) -> u64 {
    counts.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied().unwrap_or(0)
}
