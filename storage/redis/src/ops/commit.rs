//! For the owner of a run.

use async_trait::async_trait;
use holdpoint_graph::{End, RunId};
use holdpoint_storage::{
    Commit, CommitReply, CommitRequest, Disposition, InboxEntry, OpenedInterrupt, StoreResult,
};
use redis::Value;

use super::digest;
use crate::{
    RedisStore,
    call::Call,
    codec::{self, Parts},
    error::unreadable,
    guard::MEMORY_WARN,
    script::Script,
};

#[async_trait]
impl Commit for RedisStore {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        let mut reply = self.write(plain(request), request).await?;
        if matches!(&reply, Value::Array(parts) if parts.first() == Some(&is_for_commit())) {
            reply = self.write(Script::Commit, request).await?;
        }
        let mut parts = Parts::of(reply, "the reply to a commit")?;
        Ok(match parts.text()?.as_str() {
            "A" => CommitReply::Done {
                now_ms: parts.number()?,
                status: codec::status(&parts.text()?)?,
                inbox: codec::inbox(parts.pairs()?),
                durability: self.conn.durability(),
            },
            "F" => CommitReply::Fenced,
            "S" => CommitReply::Sequence { seq: parts.number()? },
            "C" => CommitReply::Cancelled,
            _ => return Err(unreadable("the reply to a commit")),
        })
    }

    async fn inbox(&self, run: &RunId) -> StoreResult<Vec<InboxEntry>> {
        let Some(mut parts) = self.read(run, "inbox", None).await? else { return Ok(Vec::new()) };
        parts.next()?;
        parts.next()?;
        Ok(codec::inbox(parts.pairs()?))
    }

    async fn partial(&self, run: &RunId, after: u64, body: Vec<u8>) -> StoreResult<()> {
        if self.conn.memory().await.percent() >= MEMORY_WARN {
            return Ok(());
        }
        let mut call = self.conn.call(Script::Partial).await?;
        call.arg(run.as_str()).number(after).arg(body);
        self.conn.ask(call).await.map(|_| ())
    }
}

impl RedisStore {
    /// Sends the request to one of the three scripts that can take it.
    async fn write(&self, script: Script, request: &CommitRequest) -> StoreResult<Value> {
        let mut call = self.conn.call(script).await?;
        let after = request.from + request.records.len() as u64;
        call.arg(request.lease.run.as_str())
            .number(request.lease.pair.epoch)
            .arg(&request.lease.pair.nonce)
            .arg(digest(request.request.as_str()))
            .arg(format!("{}:{}", request.from, request.previous.0))
            .arg(format!("{after}:{}", request.hash.0))
            .number(request.lease_ms)
            .arg(disposition(request.disposition))
            .arg(if request.is_progress { "1" } else { "0" })
            .number(request.records.len())
            .arg(request.pin.as_ref().map_or("", |pin| pin.as_str()));
        if script == Script::Commit {
            push_counts(&mut call, request);
        }
        request.records.iter().for_each(|record| {
            call.arg(record);
        });
        if script == Script::Commit {
            push_lists(&mut call, request);
        }
        self.conn.send(call, &request.request).await
    }
}

/// The reply of a script that leaves the request to `commit`.
fn is_for_commit() -> Value {
    Value::BulkString(b"M".to_vec())
}

/// The script that most commits of this kind can be left to.
fn plain(request: &CommitRequest) -> Script {
    let has_more = !request.consumed.is_empty()
        || !request.opened.is_empty()
        || !request.closed.is_empty()
        || request.snapshot.is_some();
    match request.disposition {
        Disposition::Continue if !has_more => Script::Proceed,
        Disposition::Finish { .. } if !has_more => Script::Finish,
        Disposition::Continue
        | Disposition::Finish { .. }
        | Disposition::Park { .. }
        | Disposition::Reschedule { .. } => Script::Commit,
    }
}

fn disposition(disposition: Disposition) -> String {
    match disposition {
        Disposition::Continue => "c".to_owned(),
        Disposition::Park { wake_at_ms: None } => "p".to_owned(),
        Disposition::Park { wake_at_ms: Some(at) } => format!("p{}", at.max(0)),
        Disposition::Reschedule { until_ms } => format!("s{}", until_ms.max(0)),
        Disposition::Finish { end: End::Completed } => "Fc".to_owned(),
        Disposition::Finish { end: End::Cancelled } => "Fx".to_owned(),
        Disposition::Finish { end: End::Failed(reason) } => format!("Ff{}", reason.as_str()),
    }
}

/// A question that opens or is shown anew, as the scripts take it.
pub(super) fn push_question(call: &mut Call, opened: &OpenedInterrupt) {
    let gate = opened.gate.as_deref().map_or_else(String::new, InboxEntry::of_gate);
    let votes: Vec<String> =
        opened.votes.iter().map(|vote| format!("{}|{}", vote.choice, vote.voter)).collect();
    call.arg(opened.interrupt.as_str()).arg(gate).arg(&opened.args_hash);
    let deadline = opened.deadline_ms.map_or_else(String::new, |at| at.max(0).to_string());
    call.arg(votes.join(" ")).arg(deadline).arg(opened.asked().join(" ")).arg(&opened.body);
}

/// The arguments that most commits do without.
fn push_counts(call: &mut Call, request: &CommitRequest) {
    call.number(request.consumed.len()).number(request.opened.len());
    call.number(request.closed.len()).arg(if request.snapshot.is_some() { "1" } else { "0" });
}

fn push_lists(call: &mut Call, request: &CommitRequest) {
    for key in &request.consumed {
        call.arg(key);
    }
    for opened in &request.opened {
        push_question(call, opened);
    }
    for closed in &request.closed {
        call.arg(closed.as_str());
    }
    if let Some(snapshot) = &request.snapshot {
        call.arg(snapshot);
    }
}
