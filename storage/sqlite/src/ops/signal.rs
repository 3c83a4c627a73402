//! Storing answers: one for each question, and nothing consumed on a refusal.

use holdpoint_graph::{Ballot, InterruptId, Life};
use holdpoint_storage::{Address, InboxEntry, SignalReply, SignalRequest, SignalsReply};
use rusqlite::params;

use crate::{db::id, fault::Done, row::RunRow, tx::Tx};

/// An open question.
struct Open {
    interrupt: InterruptId,
    gate: Option<String>,
    args_hash: String,
    votes: String,
}

/// An answer that waits.
struct Waiting {
    request: String,
    record: Vec<u8>,
}

/// Stores answers, all or none.
pub(crate) fn signal_all(tx: &mut Tx<'_>, requests: &[SignalRequest]) -> Done<SignalsReply> {
    let mark = tx.mark();
    tx.db.execute(include_str!("../../sql/savepoint.sql"), [])?;
    let mut said = SignalsReply::Taken(Vec::with_capacity(requests.len()));
    for (index, request) in requests.iter().enumerate() {
        let reply = signal(tx, request)?;
        match &mut said {
            SignalsReply::Taken(replies) if reply.is_taken() => replies.push(reply),
            SignalsReply::Taken(_) | SignalsReply::Refused { .. } => {
                tx.db.execute(include_str!("../../sql/rollback_to_savepoint.sql"), [])?;
                tx.go_back_to(mark);
                said = SignalsReply::Refused { index, reply };
                break;
            }
        }
    }
    tx.db.execute(include_str!("../../sql/release_savepoint.sql"), [])?;
    Ok(said)
}

/// Stores an answer.
pub(crate) fn signal(tx: &mut Tx<'_>, request: &SignalRequest) -> Done<SignalReply> {
    let Some(run) = tx.db.run_by_id(&request.run)? else { return Ok(SignalReply::NotFound) };
    let status = run.head.status();
    if status.is_terminal() {
        return Ok(SignalReply::Final { status });
    }
    if let Address::Unopened { seq, .. } = request.address
        && seq != run.head.seq
    {
        return Ok(SignalReply::Moved);
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
        Address::Gate(gate) | Address::Unopened { gate, .. } => {
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
        let (gate, args_hash, votes) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(Open { interrupt: id(row, 0)?, gate, args_hash, votes })
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
            let (is_vote, is_repeat) = (false, true);
            SignalReply::Delivered { interrupt, is_vote, is_repeat, durability }
        } else {
            SignalReply::Decided { record: first.record }
        });
    }
    let (mut key, mut is_vote) = (key, false);
    if let Some(ballot) = &request.ballot {
        match count(tx, &run, question, ballot, request)? {
            Count::Decides => {}
            Count::More => (key, is_vote) = (InboxEntry::of_vote(&interrupt, ballot), true),
            Count::Again => {
                let (is_vote, is_repeat) = (true, true);
                return Ok(SignalReply::Delivered { interrupt, is_vote, is_repeat, durability });
            }
            Count::Voted => return Ok(SignalReply::Voted),
        }
    }
    run.change(Life::signal).map_err(|error| run.broken(&error))?;
    put(tx, run, &key, request)?;
    Ok(SignalReply::Delivered { interrupt, is_vote, is_repeat: false, durability })
}

/// What a vote is, beside the others.
enum Count {
    Decides,
    More,
    Again,
    Voted,
}

fn count(
    tx: &Tx<'_>,
    run: &RunRow,
    question: &Open,
    ballot: &Ballot,
    request: &SignalRequest,
) -> Done<Count> {
    let mut same = 1;
    for vote in question.votes.split(' ') {
        let Some((choice, voter)) = vote.split_once('|') else { continue };
        if voter == ballot.voter {
            return Ok(Count::Voted);
        }
        same += u32::from(choice == ballot.choice);
    }
    let sql = include_str!("../../sql/votes.sql");
    let params = params![run.key, question.interrupt.as_str()];
    let cast: Vec<(String, String)> =
        tx.db.all(sql, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (key, by) in cast {
        let entry = InboxEntry { key, record: Vec::new() };
        let Some((_, vote)) = entry.vote() else { continue };
        if vote.voter == ballot.voter {
            let is_again = by == request.request.as_str();
            return Ok(if is_again { Count::Again } else { Count::Voted });
        }
        same += u32::from(vote.choice == ballot.choice);
    }
    Ok(if same >= ballot.needed { Count::Decides } else { Count::More })
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
