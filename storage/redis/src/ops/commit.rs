//! For the owner of a run.

use async_trait::async_trait;
use holdpoint_graph::{End, RunId};
use holdpoint_storage::{
    Commit, CommitReply, CommitRequest, Disposition, InboxEntry, OpenedInterrupt, StoreResult,
};
use redis::{Cmd, Value};

use super::digest;
use crate::{
    RedisStore,
    batch::Answer,
    call::Call,
    codec::{self, Parts},
    error::unreadable,
    guard::MEMORY_WARN,
    script::Script,
};

#[async_trait]
impl Commit for RedisStore {
    async fn commit(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        if is_plain(request) {
            let bytes = request.records.iter().map(Vec::len).sum();
            let answer = self.batches.commit(&request.request, plain(request), bytes).await?;
            if let Some(reply) = self.answered(answer)? {
                return Ok(reply);
            }
        }
        self.commit_alone(request).await
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
    /// The reply of the script for several commits; none when it leaves this one to `commit`.
    fn answered(&self, answer: Answer) -> StoreResult<Option<CommitReply>> {
        let what = "the reply to a commit";
        let (word, inbox) = match answer.word {
            Value::Array(_) => {
                let mut parts = Parts::of(answer.word, what)?;
                (parts.text()?, codec::inbox(parts.pairs()?))
            }
            word => (codec::text(word, what)?, Vec::new()),
        };
        let Some((code, rest)) = word.split_at_checked(1) else { return Err(unreadable(what)) };
        Ok(Some(match code {
            "A" => CommitReply::Done {
                now_ms: answer.now_ms,
                status: codec::status(rest)?,
                inbox,
                durability: self.conn.durability(),
            },
            "F" => CommitReply::Fenced,
            "S" => CommitReply::Sequence { seq: rest.parse().map_err(|_| unreadable(what))? },
            "C" => CommitReply::Cancelled,
            "M" => return Ok(None),
            _ => return Err(unreadable(what)),
        }))
    }

    /// Sends a commit of any kind in a script of its own.
    async fn commit_alone(&self, request: &CommitRequest) -> StoreResult<CommitReply> {
        let mut call = self.conn.call(Script::Commit).await?;
        call.arg(request.lease.run.as_str())
            .number(request.lease.pair.epoch)
            .arg(&request.lease.pair.nonce)
            .arg(digest(request.request.as_str()))
            .arg(before(request))
            .arg(after(request))
            .number(request.lease_ms)
            .arg(disposition(request.disposition))
            .arg(if request.is_progress { "1" } else { "0" })
            .number(request.records.len())
            .arg(request.pin.as_ref().map_or("", |pin| pin.as_str()));
        call.number(request.consumed.len()).number(request.opened.len());
        call.number(request.closed.len()).arg(if request.snapshot.is_some() { "1" } else { "0" });
        for record in &request.records {
            call.arg(record);
        }
        push_lists(&mut call, request);
        let reply = self.conn.send(call, &request.request).await?;
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
}

/// Whether the commit only writes records, and goes on or ends: it can go with others.
fn is_plain(request: &CommitRequest) -> bool {
    let has_more = !request.consumed.is_empty()
        || !request.opened.is_empty()
        || !request.closed.is_empty()
        || request.snapshot.is_some();
    match request.disposition {
        Disposition::Continue | Disposition::Finish { .. } => !has_more,
        Disposition::Park { .. } | Disposition::Reschedule { .. } => false,
    }
}

/// The arguments of a plain commit in the script for several.
fn plain(request: &CommitRequest) -> Cmd {
    let records = request.records.iter().map(Vec::len).sum::<usize>();
    let mut args = Cmd::with_capacity(11 + request.records.len(), 256 + records);
    args.arg(request.lease.run.as_str())
        .arg(request.lease.pair.epoch)
        .arg(request.lease.pair.nonce.as_str())
        .arg(digest(request.request.as_str()).as_slice())
        .arg(before(request))
        .arg(after(request))
        .arg(request.lease_ms)
        .arg(disposition(request.disposition))
        .arg(if request.is_progress { "1" } else { "0" })
        .arg(request.pin.as_ref().map_or("", |pin| pin.as_str()))
        .arg(request.records.len());
    for record in &request.records {
        args.arg(record.as_slice());
    }
    args
}

/// The length and the hash of the journal before the commit.
fn before(request: &CommitRequest) -> String {
    format!("{}:{}", request.from, request.previous.0)
}

/// The length and the hash of the journal after the commit.
fn after(request: &CommitRequest) -> String {
    format!("{}:{}", request.from + request.records.len() as u64, request.hash.0)
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

/// What most commits do without.
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
