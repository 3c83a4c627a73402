//! For whoever brings work and answers.

use async_trait::async_trait;
use holdpoint_graph::{Fingerprint, Namespace, RequestId, RunId};
use holdpoint_storage::{
    Address, AppendKind, AppendReply, AppendRequest, Durability, Enqueue, EnqueueReply, Enqueued,
    IfBusy, InboxEntry, NewRun, SignalReply, SignalRequest, SignalsReply, StoreResult, When,
    seal_payload, to_word,
};

use super::{commit::push_question, digest};
use crate::{
    RedisStore,
    call::Call,
    codec::{self, Parts},
    error::unreadable,
    script::Script,
};

/// Items that one script stores when the call need not be atomic: they hold the server for a
/// millisecond.
const CHUNK: usize = 100;

const SIGNAL_REPLY: &str = "the reply to a signal";

#[async_trait]
impl Enqueue for RedisStore {
    async fn enqueue(&self, items: &[NewRun], partial: bool) -> StoreResult<EnqueueReply> {
        self.conn.recheck().await?;
        self.conn.has_room().await?;
        let mut verdicts = Vec::with_capacity(items.len());
        let chunk = if partial { CHUNK } else { items.len().max(1) };
        for part in items.chunks(chunk) {
            let mut call = self.conn.call(Script::Enqueue).await?;
            call.arg(if partial { "1" } else { "0" });
            let namespace = &self.conn.config().namespace;
            part.iter().for_each(|item| push(&mut call, item, namespace));
            let Some(first) = part.first() else { continue };
            let reply = self.conn.send(call, &first.request).await?;
            let mut parts = Parts::of(reply, "the reply to an enqueue")?;
            parts.next()?;
            for item in part {
                verdicts.push(verdict(item, parts.parts()?)?);
            }
        }
        Ok(EnqueueReply { items: verdicts, durability: self.conn.durability() })
    }

    async fn signal(&self, request: &SignalRequest) -> StoreResult<SignalReply> {
        match self.signal_all(std::slice::from_ref(request)).await? {
            SignalsReply::Taken(mut replies) => {
                replies.pop().ok_or_else(|| unreadable(SIGNAL_REPLY))
            }
            SignalsReply::Refused { reply, .. } => Ok(reply),
        }
    }

    async fn signal_all(&self, requests: &[SignalRequest]) -> StoreResult<SignalsReply> {
        let Some(first) = requests.first() else { return Ok(SignalsReply::Taken(Vec::new())) };
        let mut call = self.conn.call(Script::Signal).await?;
        call.arg(first.run.as_str());
        requests.iter().for_each(|request| push_signal(&mut call, request));
        let reply = self.conn.send(call, &first.request).await?;
        let mut parts = Parts::of(reply, SIGNAL_REPLY)?;
        let durability = self.conn.durability();
        match parts.text()?.as_str() {
            "A" => {
                let replies = requests.iter().map(|_| signalled(&mut parts.parts()?, durability));
                Ok(SignalsReply::Taken(replies.collect::<StoreResult<_>>()?))
            }
            "R" => {
                let index = parts.number()?;
                let reply = signalled(&mut parts.parts()?, durability)?;
                Ok(SignalsReply::Refused { index, reply })
            }
            _ => Err(unreadable(SIGNAL_REPLY)),
        }
    }

    async fn append(&self, request: &AppendRequest, kind: &AppendKind) -> StoreResult<AppendReply> {
        // A cancel must be possible in a full store, so the script may run there; what brings work
        // back waits until there is room.
        match kind {
            AppendKind::Cancel { .. } => {}
            AppendKind::Edit { .. } | AppendKind::Redrive | AppendKind::Migrate { .. } => {
                self.conn.has_room().await?;
            }
        }
        let mut call = self.conn.call(Script::Append).await?;
        call.arg(request.run.as_str()).arg(digest(request.request.as_str()));
        call.arg(format!("{}:{}", request.from, request.previous.0));
        call.arg(format!("{}:{}", request.from + 1, request.hash.0)).arg(&request.record);
        match kind {
            AppendKind::Cancel { rollback: false } => call.arg("cancel"),
            AppendKind::Cancel { rollback: true } => call.arg("rollback"),
            AppendKind::Edit { shown } => {
                call.arg("edit");
                shown.iter().for_each(|question| push_question(&mut call, question));
                &mut call
            }
            AppendKind::Redrive => call.arg("redrive"),
            AppendKind::Migrate { from, to } => {
                call.arg("migrate").arg(from.as_str()).arg(to.as_str())
            }
        };
        let reply = self.conn.send(call, &request.request).await?;
        appended(reply, self.conn.durability())
    }

    async fn start_now(&self, run: &RunId) -> StoreResult<Option<bool>> {
        let mut call = self.conn.call(Script::StartNow).await?;
        call.arg(run.as_str());
        let reply = self.conn.ask(call).await?;
        Ok(match codec::number(&reply, "the reply to a start")? {
            -1 => None,
            done => Some(done == 1),
        })
    }
}

fn appended(reply: redis::Value, durability: Durability) -> StoreResult<AppendReply> {
    let mut parts = Parts::of(reply, "the reply to an append")?;
    Ok(match parts.text()?.as_str() {
        "A" => AppendReply::Done { status: codec::status(&parts.text()?)?, durability },
        "G" => AppendReply::Cancelling,
        "M" => AppendReply::Moved,
        "W" => AppendReply::WrongState { status: codec::status(&parts.text()?)? },
        "N" => AppendReply::NotFound,
        _ => return Err(unreadable("the reply to an append")),
    })
}

/// The 16 arguments of an item.
fn push(call: &mut Call, item: &NewRun, namespace: &Namespace) {
    let busy = match item.if_busy {
        IfBusy::Enqueue => "e",
        IfBusy::Reject => "r",
        IfBusy::Interrupt => "i",
        IfBusy::Rollback => "b",
    };
    let tags: Vec<String> = item.tags.iter().map(|tag| to_word(tag)).collect();
    call.arg(item.run.as_str())
        .arg(request_digest(&item.request))
        .arg(item.graph.as_str())
        .arg(item.queue.as_str())
        .arg(item.session.as_ref().map_or("", |session| session.as_str()))
        .arg(busy)
        .arg(item.fingerprint.as_ref().map_or("", Fingerprint::as_str))
        .number(item.priority)
        .arg(when(item.start))
        .arg(item.expires.map_or_else(String::new, when))
        .arg(item.deadline.map_or_else(String::new, when))
        .number(item.queue_depth_max)
        .arg(item.key.as_ref().map_or("", |key| key.as_str()))
        .arg(tags.join("\n"))
        .arg(&item.payload_hash)
        .arg(seal_payload(namespace, &item.run, &item.payload));
}

fn request_digest(request: &RequestId) -> [u8; 8] {
    digest(request.as_str())
}

fn when(time: When) -> String {
    match time {
        When::In(ms) => format!("+{ms}"),
        When::At(ms) => format!("@{ms}"),
    }
}

fn verdict(item: &NewRun, mut parts: Parts) -> StoreResult<Enqueued> {
    let run = item.run.clone();
    Ok(match parts.text()?.as_str() {
        "C" => Enqueued::Created { run, status: codec::status(&parts.text()?)? },
        "R" => Enqueued::Repeated { run, status: codec::status(&parts.text()?)? },
        "E" => Enqueued::Existing {
            run: codec::id(&parts.bytes()?, "a key's run")?,
            status: codec::status(&parts.text()?)?,
        },
        "K" => Enqueued::KeyConflict { run: codec::id(&parts.bytes()?, "a key's run")? },
        "X" => Enqueued::RunExists,
        "B" => {
            let run = codec::id(&parts.bytes()?, "an active run")?;
            let question = parts.bytes()?;
            let question = match question.as_slice() {
                [] => None,
                text => Some(codec::id(text, "a question")?),
            };
            Enqueued::SessionBusy { run, question }
        }
        "G" => Enqueued::SessionGraph { graph: codec::id(&parts.bytes()?, "a graph")? },
        "Q" => Enqueued::QueueFull { depth: parts.number()? },
        _ => return Err(unreadable("the reply to an enqueue")),
    })
}

fn push_signal(call: &mut Call, request: &SignalRequest) {
    let address = match &request.address {
        Address::Interrupt(interrupt) => InboxEntry::of_interrupt(interrupt),
        Address::Gate(gate) | Address::Unopened { gate, .. } => InboxEntry::of_gate(gate),
        Address::Only => "?".to_owned(),
    };
    call.arg(request.request.as_str()).arg(address);
    call.arg(request.args_hash.as_deref().unwrap_or_default()).arg(&request.record);
    match &request.ballot {
        Some(ballot) => call.arg(&ballot.voter).arg(&ballot.choice).number(ballot.needed),
        None => call.arg("").arg("").number(1),
    };
    match request.address {
        Address::Unopened { seq, .. } => call.number(seq),
        Address::Interrupt(_) | Address::Gate(_) | Address::Only => call.arg(""),
    };
}

fn signalled(parts: &mut Parts, durability: Durability) -> StoreResult<SignalReply> {
    Ok(match parts.text()?.as_str() {
        "D" => {
            let interrupt = codec::id(&parts.bytes()?, "a question")?;
            let (is_vote, is_repeat) = (parts.text()? == "1", parts.text()? == "1");
            SignalReply::Delivered { interrupt, is_vote, is_repeat, durability }
        }
        "K" => SignalReply::Kept { durability },
        "N" => SignalReply::NotFound,
        "E" => SignalReply::Final { status: codec::status(&parts.text()?)? },
        "O" => SignalReply::NotOpen,
        "Q" => SignalReply::NoQuestion,
        "L" => SignalReply::Moved,
        "M" => {
            let ids = parts.texts()?;
            let open = ids.iter().map(|id| codec::id(id.as_bytes(), "a question"));
            SignalReply::Ambiguous { open: open.collect::<StoreResult<_>>()? }
        }
        "H" => SignalReply::ArgsChanged { args_hash: parts.text()? },
        "T" => SignalReply::Voted,
        "V" => SignalReply::Decided { record: parts.bytes()? },
        _ => return Err(unreadable(SIGNAL_REPLY)),
    })
}
