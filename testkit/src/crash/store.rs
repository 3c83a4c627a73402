//! The points at a store's boundary.

use std::{any::Any, future::Future, sync::Arc};

use holdpoint_graph::{Event, Life, RequestId, RunId, RunStatus};
use holdpoint_storage::{
    AppendKind, Chain, Claims, CommitReply, CommitRequest, Disposition, Renewal, RunFilter,
    RunHead, Store, StoreError, StoreResult,
};

use super::{Crash, CrashError};
use crate::between::{Between, Call, Middle};

/// The most runs that are looked at.
const RUNS_MAX: usize = 100;
/// What is due so soon counts as due: the call that follows may find it so.
const SOON_MS: i64 = 50;

/// A store whose calls pass the points of a [`Crash`].
pub type CrashStore = Between<Crash>;

impl CrashStore {
    /// `inner` behind the points of `crash`.
    pub fn new(inner: Arc<dyn Store>, crash: Crash) -> Self {
        Self::of(inner, crash)
    }
}

impl Middle for Crash {
    async fn pass<T: Send + Sync + 'static>(
        &self,
        inner: &dyn Store,
        call: Call<'_>,
        work: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        self.while_still().await;
        let Some(point) = self.point() else { return work.await };
        if is_before(point, inner, call).await {
            self.at(point).await.map_err(refused)?;
        }
        let waiting = match (point, may_fire(call)) {
            ("timer.after", true) => waiting(inner).await,
            _ => Vec::new(),
        };
        let reply = work.await?;
        if is_fenced(call, &reply) {
            self.log("fenced", call.name);
        }
        if is_after(point, inner, call, &reply, &waiting).await {
            self.at(point).await.map_err(lost)?;
        }
        Ok(reply)
    }
}

/// Whether the point is right before this call.
async fn is_before(point: &str, inner: &dyn Store, call: Call<'_>) -> bool {
    match point {
        "enqueue.before_script" => call.name == "enqueue",
        "claim.before" => call.name == "claim",
        "signal.before" => call.name == "signal",
        "release.before" => call.name == "release",
        "prune.in" => call.name == "prune",
        "migrate.between_steps" => {
            let kind = call.request.downcast_ref::<AppendKind>();
            kind.is_some_and(|kind| matches!(kind, AppendKind::Migrate { .. }))
        }
        "timer.before" => may_fire(call) && is_any_due(inner).await,
        "reap.between_scan_and_move" => call.name == "tick" && is_any_overdue(inner).await,
        _ => place_of(inner, call).is_some_and(|(before, _)| before == point),
    }
}

/// Whether the point is right after this call.
async fn is_after(
    point: &str,
    inner: &dyn Store,
    call: Call<'_>,
    reply: &(dyn Any + Send + Sync),
    waiting: &[RunId],
) -> bool {
    match point {
        "enqueue.after_script" => call.name == "enqueue",
        "signal.after_before_wake" => call.name == "signal",
        "claim.after_before_resolve" => {
            reply.downcast_ref::<Claims>().is_some_and(|claims| !claims.runs.is_empty())
        }
        "timer.after" => has_fired(inner, waiting).await,
        _ => place_of(inner, call).is_some_and(|(_, after)| after == point),
    }
}

/// The points before and after a commit, by what it writes.
fn place_of(inner: &dyn Store, call: Call<'_>) -> Option<(&'static str, &'static str)> {
    let request = call.request.downcast_ref::<CommitRequest>()?;
    match request.disposition {
        Disposition::Park { .. } => Some(("park.before", "park.after")),
        Disposition::Reschedule { .. } => Some(("reschedule.before", "")),
        Disposition::Finish { .. } => Some(("finish.before", "finish.after")),
        Disposition::Continue => {
            let events = events(inner, request);
            let has = |is_it: fn(&Event) -> bool| events.iter().any(is_it);
            if has(|event| matches!(event, Event::NodeStarted { .. })) {
                return Some(("effect.before_start_commit", "effect.after_start_commit"));
            }
            let is_completed = has(|event| matches!(event, Event::NodeCompleted { .. }));
            is_completed.then_some(("commit.before", "commit.after"))
        }
    }
}

fn events(inner: &dyn Store, request: &CommitRequest) -> Vec<Event> {
    let CommitRequest { lease, from, previous, records, .. } = request;
    let mut chain = Chain::at(inner.namespace(), &lease.run, *from, previous)
        .expect("an owner names a good place");
    let decode = |record: &Vec<u8>| chain.decode(record).expect("an owner writes good records");
    records.iter().map(decode).map(|record| record.event).collect()
}

/// Whether a call is one of those that fire timers.
fn may_fire(call: Call<'_>) -> bool {
    call.name == "tick" || call.name == "claim"
}

async fn runs(inner: &dyn Store, statuses: &[RunStatus]) -> Vec<RunHead> {
    let filter = RunFilter { statuses: statuses.to_vec(), ..RunFilter::default() };
    inner.runs(&filter, None, RUNS_MAX).await.map(|page| page.rows).unwrap_or_default()
}

async fn is_any_due(inner: &dyn Store) -> bool {
    let Ok(now_ms) = inner.now_ms().await else { return false };
    let timed = runs(inner, &[RunStatus::Scheduled, RunStatus::Parked]).await;
    timed.iter().filter_map(RunHead::due_at_ms).any(|at_ms| at_ms <= now_ms + SOON_MS)
}

async fn is_any_overdue(inner: &dyn Store) -> bool {
    let Ok(now_ms) = inner.now_ms().await else { return false };
    let running = runs(inner, &[RunStatus::Running]).await;
    running.iter().any(|head| match &head.life {
        Life::Running { lease } => lease.deadline_ms <= now_ms,
        _ => false,
    })
}

/// The runs that wait for a time.
async fn waiting(inner: &dyn Store) -> Vec<RunId> {
    runs(inner, &[RunStatus::Scheduled]).await.into_iter().map(|head| head.run).collect()
}

/// Whether one of these runs waits no more.
async fn has_fired(inner: &dyn Store, waiting: &[RunId]) -> bool {
    if waiting.is_empty() {
        return false;
    }
    let still = self::waiting(inner).await;
    waiting.iter().any(|run| !still.contains(run))
}

/// Whether the store refused an owner that is none any more.
fn is_fenced(call: Call<'_>, reply: &(dyn Any + Send + Sync)) -> bool {
    match call.name {
        "commit" => reply.downcast_ref::<CommitReply>() == Some(&CommitReply::Fenced),
        "release" => reply.downcast_ref::<bool>() == Some(&false),
        "renew" => {
            let renewals = reply.downcast_ref::<Vec<Renewal>>();
            renewals.is_some_and(|renewals| renewals.contains(&Renewal::Fenced))
        }
        _ => false,
    }
}

fn refused(error: CrashError) -> StoreError {
    StoreError::Unavailable { cause: error.to_string() }
}

fn lost(error: CrashError) -> StoreError {
    let request = RequestId::new("lost-reply").expect("it is within the alphabet of ids");
    StoreError::UnknownOutcome { request, cause: error.to_string() }
}
