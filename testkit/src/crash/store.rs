//! The points at a store's boundary.

use std::{any::Any, future::Future, sync::Arc, time::Duration};

use holdpoint_graph::{Event, Life, RequestId, RunId, RunStatus};
use holdpoint_storage::{
    AppendKind, Chain, ClaimRequest, Claims, CommitReply, CommitRequest, Disposition, Renewal,
    RunFilter, RunHead, Store, StoreError, StoreResult,
};

use super::{Crash, CrashError};
use crate::between::{Between, Call, Middle};

/// The most runs that are looked at.
const RUNS_MAX: usize = 100;

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
            self.while_still().await;
        }
        let waiting = match (point, may_fire(call)) {
            ("timer.after", true) => waiting(inner).await,
            _ => Vec::new(),
        };
        let reply = work.await?;
        if is_fenced(call, &reply) {
            self.log("fenced", call.name);
        }
        if id_of(call).is_some_and(|id| self.has_lost(id)) {
            self.log("repeated", if is_done(&reply) { "done" } else { "refused" });
        }
        if is_after(point, inner, call, &reply, &waiting).await
            && let Err(error) = self.at(point).await
        {
            id_of(call).into_iter().for_each(|id| self.lose(id));
            return Err(lost(error));
        }
        Ok(reply)
    }
}

/// Whether the point is right before this call. For what happens at a time, waits for that.
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
        "timer.before" => may_fire(call) && until_due(inner).await,
        "reap.between_scan_and_move" => call.name == "tick" && until_overdue(inner).await,
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

async fn runs(inner: &dyn Store, status: RunStatus) -> Vec<RunHead> {
    let filter = RunFilter { statuses: vec![status], ..RunFilter::default() };
    inner.runs(&filter, None, RUNS_MAX).await.map(|page| page.rows).unwrap_or_default()
}

/// Whether a run waits for a time; returns when that has come. A call that was let through before
/// could come to the store after it.
async fn until_due(inner: &dyn Store) -> bool {
    until_passed(inner, RunStatus::Scheduled, RunHead::due_at_ms).await
}

/// Whether a worker has a run; returns when its lease is over.
async fn until_overdue(inner: &dyn Store) -> bool {
    let deadline = |head: &RunHead| match &head.life {
        Life::Running { lease } => Some(lease.deadline_ms),
        _ => None,
    };
    until_passed(inner, RunStatus::Running, deadline).await
}

async fn until_passed(
    inner: &dyn Store,
    status: RunStatus,
    time: impl Fn(&RunHead) -> Option<i64>,
) -> bool {
    loop {
        let (found, now_ms) = (runs(inner, status).await, inner.now_ms().await);
        let (Some(at_ms), Ok(now_ms)) = (found.iter().filter_map(&time).min(), now_ms) else {
            return false;
        };
        match u64::try_from(at_ms - now_ms) {
            Ok(left_ms) if left_ms > 0 => tokio::time::sleep(Duration::from_millis(left_ms)).await,
            Ok(_) | Err(_) => return true,
        }
    }
}

/// The runs that wait for a time.
async fn waiting(inner: &dyn Store) -> Vec<RunId> {
    runs(inner, RunStatus::Scheduled).await.into_iter().map(|head| head.run).collect()
}

/// Whether one of these runs waits no more.
async fn has_fired(inner: &dyn Store, waiting: &[RunId]) -> bool {
    if waiting.is_empty() {
        return false;
    }
    let still = self::waiting(inner).await;
    waiting.iter().any(|run| !still.contains(run))
}

/// The id under which an owner's call is repeated.
fn id_of(call: Call<'_>) -> Option<&str> {
    let commit = call.request.downcast_ref::<CommitRequest>();
    let claim = call.request.downcast_ref::<ClaimRequest>();
    commit.map(|commit| commit.request.as_str()).or(claim.map(|claim| claim.nonce.as_str()))
}

/// Whether a repeated call of an owner was answered with what it did.
fn is_done(reply: &(dyn Any + Send + Sync)) -> bool {
    matches!(reply.downcast_ref(), Some(CommitReply::Done { .. }))
        || reply.downcast_ref::<Claims>().is_some_and(|claims| !claims.runs.is_empty())
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
