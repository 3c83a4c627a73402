//! For the upkeep that every worker does, and for operators.

use async_trait::async_trait;
use holdpoint_graph::{GraphId, QueueId, RunId, SessionId, WorkerId};
use holdpoint_storage::{
    Cursor, Damage, GraphRecord, Maintain, Page, Retention, RunHead, StoreResult, TickRequest,
    Ticked, WorkerRecord,
};

use super::{read::Index, request_of};
use crate::{
    RedisStore,
    codec::{self, Parts},
    error::unreadable,
    script::Script,
};

/// Runs that one script deletes or hands back.
const STEP: usize = 100;
/// Rows of one page of pinned runs.
const PINNED_MAX: usize = 200;

#[async_trait]
impl Maintain for RedisStore {
    async fn beat(&self, record: &WorkerRecord) -> StoreResult<()> {
        let text = serde_json::to_string(record).map_err(|_| unreadable("a worker"))?;
        let mut call = self.conn.call(Script::Worker).await?;
        call.arg(record.worker.as_str()).arg(text);
        self.conn.ask(call).await.map(|_| ())
    }

    async fn lost(
        &self,
        worker: &WorkerId,
        evidence: &str,
        loss_delays_ms: &[i64],
    ) -> StoreResult<Vec<RunId>> {
        let mut runs = Vec::new();
        loop {
            let mut call = self.conn.call(Script::Lost).await?;
            call.arg(worker.as_str()).arg(quoted(evidence));
            for delay in loss_delays_ms {
                call.number(*delay);
            }
            let mut reply = Parts::of(self.conn.ask(call).await?, "the reply to a loss")?;
            let before = runs.len();
            while reply.left() > 0 {
                runs.push(codec::id(&reply.bytes()?, "a run's id")?);
            }
            if runs.len() == before {
                return Ok(runs);
            }
        }
    }

    async fn leave(&self, worker: &WorkerId) -> StoreResult<()> {
        let mut call = self.conn.call(Script::Worker).await?;
        call.arg(worker.as_str()).arg("");
        self.conn.ask(call).await.map(|_| ())
    }

    async fn tick(&self, request: &TickRequest) -> StoreResult<Ticked> {
        self.conn.recheck().await?;
        let mut call = self.conn.call(Script::Tick).await?;
        call.arg(request.worker.as_str()).arg(&request.nonce).number(request.lease_ms);
        call.number(request.grace_ms).number(request.hold_after_ms);
        call.arg(if request.doubt { "1" } else { "0" });
        call.number(request.max.min(STEP)).arg(quoted("lease expired"));
        for delay in &request.loss_delays_ms {
            call.number(*delay);
        }
        call.ends_with_server();
        let reply = self.conn.send(call, &request_of(&request.nonce)).await?;
        let mut parts = Parts::of(reply, "the reply to a tick")?;
        let now_ms: i64 = parts.number()?;
        let held: i64 = parts.number()?;
        let fired = parts.number()?;
        let reaped = codec::runs(parts.texts()?)?;
        let closing = self.claimed(&mut parts, now_ms.saturating_add(request.lease_ms)).await?;
        let held_until_ms = (held >= 0).then_some(held);
        Ok(Ticked { now_ms, held_until_ms, reaped, fired, closing })
    }

    async fn prune(&self, retention: Retention, max: usize) -> StoreResult<usize> {
        let mut count = 0;
        while count < max {
            let step = STEP.min(max - count);
            let mut call = self.conn.call(Script::Prune).await?;
            call.number(retention.done_ms).number(retention.failed_ms).number(retention.key_ms);
            call.number(step);
            let reply = self.conn.ask(call).await?;
            let pruned = codec::number(&reply, "the reply to a pruning")?;
            let pruned = usize::try_from(pruned).unwrap_or(0);
            count += pruned;
            if pruned < step {
                break;
            }
        }
        Ok(count)
    }

    async fn publish(&self, record: &GraphRecord) -> StoreResult<()> {
        let text = serde_json::to_string(record).map_err(|_| unreadable("a graph"))?;
        let mut call = self.conn.call(Script::Registry).await?;
        call.arg("graph").arg(format!("{} {}", record.graph, record.fingerprint)).arg(text);
        self.conn.ask(call).await.map(|_| ())
    }

    async fn pause(&self, queue: &QueueId, paused: bool) -> StoreResult<()> {
        let mut call = self.conn.call(Script::Registry).await?;
        call.arg(if paused { "pause" } else { "resume" }).arg(queue.as_str());
        self.conn.ask(call).await.map(|_| ())
    }

    async fn delete_session(&self, session: &SessionId) -> StoreResult<Option<bool>> {
        let key_ms = Retention::default().key_ms;
        let mut has_begun = false;
        loop {
            let mut call = self.conn.call(Script::DeleteSession).await?;
            call.arg(session.as_str()).number(key_ms);
            let reply = self.conn.ask(call).await?;
            match codec::number(&reply, "the reply to a deletion")? {
                -1 => return Ok(has_begun.then_some(true)),
                0 => return Ok(Some(false)),
                1 => return Ok(Some(true)),
                2 => has_begun = true,
                _ => return Err(unreadable("the reply to a deletion")),
            }
        }
    }

    async fn pinned(&self, graph: &GraphId, after: Option<&Cursor>) -> StoreResult<Page<RunHead>> {
        let index = Index { name: "ix".to_owned(), is_down: true };
        let is_pinned = |head: &RunHead| {
            head.graph == *graph && head.fingerprint.is_some() && !head.status().is_terminal()
        };
        self.heads(&index, &is_pinned, after, PINNED_MAX).await
    }

    async fn faults(&self) -> StoreResult<Vec<Damage>> {
        self.find_faults().await
    }

    async fn repair(&self, faults: &[Damage]) -> StoreResult<Vec<bool>> {
        let mut mended = Vec::with_capacity(faults.len());
        for fault in faults {
            mended.push(self.mend(fault).await?);
        }
        Ok(mended)
    }
}

/// A text as JSON, for a record that a script puts together.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
