//! For workers: claims, leases, and the wait for work.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use holdpoint_storage::{
    Claim, ClaimRequest, ClaimedRun, Claims, Lane, Lease, Renewal, StoreResult,
};

use super::{digest, lane_text, request_of};
use crate::{
    RedisStore,
    codec::{self, Parts},
    error::unreadable,
    script::Script,
};

/// Leases that one script renews.
const RENEWALS_MAX: usize = 500;
/// The most lanes that one claim looks at.
const LANES_MAX: usize = 256;

#[async_trait]
impl Claim for RedisStore {
    async fn claim(&self, request: &ClaimRequest) -> StoreResult<Claims> {
        self.conn.recheck().await?;
        let mut call = self.conn.call(Script::Claim).await?;
        call.arg(request.worker.as_str()).arg(&request.nonce).arg(digest(&request.nonce));
        call.number(request.max.min(1_000)).number(request.lease_ms);
        call.arg(if request.oldest_first { "1" } else { "0" });
        call.number(request.bytes_max as u64);
        // A lane that is named twice is one lane.
        let lanes: BTreeSet<&Lane> = request.lanes.iter().collect();
        for lane in lanes.into_iter().take(LANES_MAX) {
            call.arg(lane_text(lane));
        }
        let reply = self.conn.send(call, &request_of(&request.nonce)).await?;
        let mut parts = Parts::of(reply, "the reply to a claim")?;
        let now_ms: i64 = parts.number()?;
        let due: i64 = parts.number()?;
        let runs = self.claimed(&mut parts, now_ms.saturating_add(request.lease_ms)).await?;
        Ok(Claims { now_ms, runs, next_due_ms: (due >= 0).then_some(due) })
    }

    async fn renew(&self, leases: &[Lease], lease_ms: i64) -> StoreResult<Vec<Renewal>> {
        let mut renewals = Vec::with_capacity(leases.len());
        for part in leases.chunks(RENEWALS_MAX) {
            let mut call = self.conn.call(Script::Renew).await?;
            call.number(lease_ms);
            for lease in part {
                call.arg(lease.run.as_str()).number(lease.pair.epoch).arg(&lease.pair.nonce);
            }
            let mut parts = Parts::of(self.conn.ask(call).await?, "the reply to a renewal")?;
            for _ in part {
                renewals.push(match codec::number(&parts.next()?, "the reply to a renewal")? {
                    -1 => Renewal::Fenced,
                    sum @ 0..=3 => Renewal::Kept { cancel: sum & 1 != 0, has_inbox: sum & 2 != 0 },
                    _ => return Err(unreadable("the reply to a renewal")),
                });
            }
        }
        Ok(renewals)
    }

    async fn release(&self, lease: &Lease) -> StoreResult<bool> {
        let mut call = self.conn.call(Script::Release).await?;
        call.arg(lease.run.as_str()).number(lease.pair.epoch).arg(&lease.pair.nonce);
        let reply = self.conn.send(call, &request_of(&lease.pair.nonce)).await?;
        Ok(codec::number(&reply, "the reply to a release")? == 1)
    }

    async fn wait(&self, lanes: &[Lane], patience: Duration) {
        let names: Vec<String> = lanes.iter().take(LANES_MAX).map(lane_text).collect();
        self.wake.wait(&names, patience).await;
    }
}

impl RedisStore {
    /// The claimed runs that are left of a reply. One that cannot be read is put aside.
    pub(super) async fn claimed(
        &self,
        parts: &mut Parts,
        deadline_ms: i64,
    ) -> StoreResult<Vec<ClaimedRun>> {
        let namespace = &self.conn.config().namespace;
        let (mut runs, mut damaged) = (Vec::with_capacity(parts.left()), Vec::new());
        while parts.left() > 0 {
            let mut claimed = parts.parts()?;
            let run = claimed.text()?;
            match codec::claimed(namespace, &run, claimed, deadline_ms) {
                Ok(claimed) => runs.push(claimed),
                Err(error) => {
                    tracing::warn!(%error, "puts a run aside that cannot be read");
                    damaged.push(run);
                }
            }
        }
        if !damaged.is_empty() {
            let mut call = self.conn.call(Script::Aside).await?;
            damaged.iter().for_each(|run| {
                call.arg(run);
            });
            self.conn.ask(call).await?;
        }
        Ok(runs)
    }
}
