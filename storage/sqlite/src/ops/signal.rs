//! Storing answers: one for each question, and nothing consumed on a refusal.

use holdpoint_graph::{InterruptId, Life};
use holdpoint_storage::{Address, InboxEntry, SignalReply, SignalRequest};
use rusqlite::params;

use crate::{db::id, fault::Done, row::RunRow, tx::Tx};

/// An open question.
struct Open {
    interrupt: InterruptId,
    gate: Option<String>,
    args_hash: String,
}

/// An answer that waits.
struct Waiting {
    request: String,
    record: Vec<u8>,
}

/// Stores an answer.
pub(crate) fn signal(tx: &mut Tx<'_>, request: &SignalRequest) -> Done<SignalReply> {
    let Some(run) = tx.db.run_by_id(&request.run)? else { return Ok(SignalReply::NotFound) };
    let status = run.head.status();
    if status.is_terminal() {
        return Ok(SignalReply::Final { status });
    }
    let mut open = open_questions(tx, &run)?;
    match &request.address {
        Address::Interrupt(interrupt) => {
            open.retain(|question| question.interrupt == *interrupt);
            match open.pop() {
                Some(question) => deliver(tx, run, &question, request),
                None => Ok(SignalReply::NotOpen),
            }
        }
        Address::Gate(gate) => {
            open.retain(|question| question.gate.as_ref() == Some(gate));
            match only(open) {
                Ok(Some(question)) => deliver(tx, run, &question, request),
                Ok(None) => keep(tx, run, gate, request),
                Err(ambiguous) => Ok(ambiguous),
            }
        }
        Address::Only => match only(open) {
            Ok(Some(question)) => deliver(tx, run, &question, request),
            Ok(None) => Ok(SignalReply::NoQuestion),
            Err(ambiguous) => Ok(ambiguous),
        },
    }
}

fn only(mut open: Vec<Open>) -> Result<Option<Open>, SignalReply> {
    if open.len() > 1 {
        let open = open.into_iter().map(|question| question.interrupt).collect();
        return Err(SignalReply::Ambiguous { open });
    }
    Ok(open.pop())
}

fn open_questions(tx: &Tx<'_>, run: &RunRow) -> Done<Vec<Open>> {
    if run.open_count == 0 {
        return Ok(Vec::new());
    }
    tx.db.all(include_str!("../../sql/open_interrupts.sql"), [run.key], |row| {
        Ok(Open { interrupt: id(row, 0)?, gate: row.get(1)?, args_hash: row.get(2)? })
    })
}

/// Stores the answer to an open question, and wakes the run if it is parked.
fn deliver(
    tx: &mut Tx<'_>,
    mut run: RunRow,
    question: &Open,
    request: &SignalRequest,
) -> Done<SignalReply> {
    if request.args_hash.as_ref().is_some_and(|hash| *hash != question.args_hash) {
        return Ok(SignalReply::ArgsChanged { args_hash: question.args_hash.clone() });
    }
    let interrupt = question.interrupt.clone();
    let durability = tx.db.durability;
    let key = InboxEntry::of_interrupt(&interrupt);
    let of_gate = question.gate.as_deref().map(InboxEntry::of_gate);
    for key in [Some(&key), of_gate.as_ref()].into_iter().flatten() {
        let Some(first) = waiting(tx, &run, key)? else { continue };
        return Ok(if first.request == request.request.as_str() {
            SignalReply::Delivered { interrupt, durability }
        } else {
            SignalReply::Decided { record: first.record }
        });
    }
    run.change(Life::signal).map_err(|error| run.broken(&error))?;
    put(tx, run, &key, request)?;
    Ok(SignalReply::Delivered { interrupt, durability })
}

/// Keeps the answer to a gate that is not open yet.
fn keep(tx: &mut Tx<'_>, run: RunRow, gate: &str, request: &SignalRequest) -> Done<SignalReply> {
    let key = InboxEntry::of_gate(gate);
    let kept = SignalReply::Kept { durability: tx.db.durability };
    match waiting(tx, &run, &key)? {
        Some(first) if first.request == request.request.as_str() => Ok(kept),
        Some(first) => Ok(SignalReply::Decided { record: first.record }),
        None => {
            put(tx, run, &key, request)?;
            Ok(kept)
        }
    }
}

fn waiting(tx: &Tx<'_>, run: &RunRow, key: &str) -> Done<Option<Waiting>> {
    if run.inbox_count == 0 {
        return Ok(None);
    }
    tx.db.one(include_str!("../../sql/inbox_entry.sql"), params![run.key, key], |row| {
        Ok(Waiting { request: row.get(0)?, record: row.get(1)? })
    })
}

fn put(tx: &mut Tx<'_>, mut run: RunRow, key: &str, request: &SignalRequest) -> Done<()> {
    let params = params![run.key, key, request.request.as_str(), request.record];
    tx.db.execute(include_str!("../../sql/insert_inbox.sql"), params)?;
    run.inbox_count += 1;
    run.head.updated_at_ms = tx.now_ms;
    tx.save(&mut run)
}
