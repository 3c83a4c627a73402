//! The owner's writes: events and what becomes of the run, and partial results.

use holdpoint_graph::{End, Life, Pair, RunId};
use holdpoint_storage::{CommitReply, CommitRequest, Disposition, OpenedInterrupt};
use rusqlite::params;

use crate::{
    fault::{Done, corrupt},
    ops::append::pin,
    questions::lists_json,
    row::{RunRow, what},
    tx::{Tx, remember},
};

/// Partial results that are kept of a run.
const PARTIALS_MAX: i64 = 1_000;

/// Writes events and what becomes of the run.
pub(crate) fn commit(tx: &mut Tx<'_>, request: &CommitRequest) -> Done<CommitReply> {
    let lease = &request.lease;
    let Some(mut run) = tx.db.run_by_id(&lease.run)? else {
        return Err(corrupt(what(&lease.run), "its owner commits to it, and it is not stored"));
    };
    if run.knows(&request.request) {
        return done(tx, &run);
    }
    let end_ms = request.lease_end_ms(run.lease_end_ms().unwrap_or(0), tx.now_ms);
    if run.change(|life| life.renew(&lease.pair, end_ms)).is_err() {
        return Ok(CommitReply::Fenced);
    }
    if request.from != run.head.seq || request.previous != run.head.hash {
        return Ok(CommitReply::Sequence { seq: run.head.seq });
    }
    let ends_cancelled = matches!(request.disposition, Disposition::Finish { end: End::Cancelled });
    if run.head.cancel.is_some() && !ends_cancelled {
        return Ok(CommitReply::Cancelled);
    }
    write(tx, &mut run, request)?;
    dispose(tx, &mut run, request.disposition, &lease.pair)?;
    remember(&mut run, &request.request);
    run.head.updated_at_ms = tx.now_ms;
    tx.save(&mut run)?;
    done(tx, &run)
}

fn done(tx: &Tx<'_>, run: &RunRow) -> Done<CommitReply> {
    Ok(CommitReply::Done {
        now_ms: tx.now_ms,
        status: run.head.status(),
        inbox: tx.db.inbox(run)?,
        durability: tx.db.durability,
    })
}

/// The parts of a commit that do not depend on what becomes of the run.
fn write(tx: &Tx<'_>, run: &mut RunRow, request: &CommitRequest) -> Done<()> {
    for record in &request.records {
        append_record(tx, run, record)?;
    }
    run.head.hash = request.hash.clone();
    if !request.records.is_empty() {
        run.head.losses.clear();
    }
    if let Some(snapshot) = &request.snapshot {
        tx.db.execute(include_str!("../../sql/put_snapshot.sql"), params![run.key, snapshot])?;
        run.head.snapshot_seq = run.head.seq;
        run.head.tail_bytes = 0;
    }
    if let Some(to) = request.pin.as_ref().filter(|to| Some(*to) != run.head.fingerprint.as_ref()) {
        pin(tx, run, to)?;
    }
    questions(tx, run, request)?;
    if request.is_progress {
        run.head.lost_in_row = 1;
    }
    Ok(())
}

/// Appends one record; the caller sets the hash of the journal.
pub(crate) fn append_record(tx: &Tx<'_>, run: &mut RunRow, record: &[u8]) -> Done<()> {
    let params = params![run.key, run.head.seq as i64, record];
    tx.db.execute(include_str!("../../sql/insert_event.sql"), params)?;
    run.head.seq += 1;
    run.head.tail_bytes += record.len() as u64;
    Ok(())
}

fn questions(tx: &Tx<'_>, run: &mut RunRow, request: &CommitRequest) -> Done<()> {
    for key in &request.consumed {
        let sql = include_str!("../../sql/consume.sql");
        run.inbox_count -= tx.db.execute(sql, params![run.key, key])? as i64;
    }
    show(tx, run, &request.opened)?;
    for closed in &request.closed {
        let sql = include_str!("../../sql/close_interrupt.sql");
        run.open_count -= tx.db.execute(sql, params![run.key, closed.as_str()])? as i64;
    }
    Ok(())
}

/// Opens questions, or shows open ones anew. The lists follow by the triggers of the schema.
pub(crate) fn show(tx: &Tx<'_>, run: &mut RunRow, questions: &[OpenedInterrupt]) -> Done<()> {
    for question in questions {
        let OpenedInterrupt { interrupt, gate, args_hash, votes, body, deadline_ms, .. } = question;
        let votes = votes.iter().map(|vote| format!("{}|{}", vote.choice, vote.voter));
        let (id, votes) = (interrupt.as_str(), votes.collect::<Vec<_>>().join(" "));
        let lists = lists_json(&run.head, &question.asked());
        let sql = include_str!("../../sql/show_interrupt.sql");
        let shown = params![run.key, id, gate, args_hash, votes, body, deadline_ms, lists];
        if tx.db.execute(sql, shown)? == 0 {
            let sql = include_str!("../../sql/open_interrupt.sql");
            let (ns, key, now) = (tx.db.ns, run.key, tx.now_ms);
            let opened =
                params![ns, key, id, gate, args_hash, now, votes, body, deadline_ms, lists];
            tx.db.execute(sql, opened)?;
            run.open_count += 1;
        }
    }
    Ok(())
}

fn dispose(tx: &Tx<'_>, run: &mut RunRow, disposition: Disposition, pair: &Pair) -> Done<()> {
    let moved = match disposition {
        Disposition::Continue => return Ok(()),
        Disposition::Park { .. } if is_answered(tx, run)? => return Ok(()),
        Disposition::Park { wake_at_ms } => run.change(|life| life.park(pair, wake_at_ms)),
        Disposition::Reschedule { until_ms } => {
            run.change(|life| life.reschedule(pair, until_ms, tx.now_ms))
        }
        Disposition::Finish { end } => run.change(|life| life.finish(pair, end)),
    };
    moved.map_err(|error| run.broken(&error))?;
    run.claim_ended();
    if let Life::Parked { wake_at_ms: Some(wake_at_ms) } = run.head.life
        && wake_at_ms <= tx.now_ms
    {
        run.change(|life| life.fire(tx.now_ms)).map_err(|error| run.broken(&error))?;
    }
    Ok(())
}

/// Whether an answer that waits is one to an open question.
fn is_answered(tx: &Tx<'_>, run: &RunRow) -> Done<bool> {
    if run.inbox_count == 0 || run.open_count == 0 {
        return Ok(false);
    }
    Ok(tx.db.number(include_str!("../../sql/is_answered.sql"), [run.key])? == 1)
}

/// Stores a partial result; of a run that is gone there is nothing to keep.
pub(crate) fn partial(tx: &mut Tx<'_>, run: &RunId, after: u64, body: &[u8]) -> Done<()> {
    let Some(run) = tx.db.run_by_id(run)? else { return Ok(()) };
    let sql = include_str!("../../sql/last_partial.sql");
    let last: Option<i64> = tx.db.one(sql, [run.key], |row| Ok(row.get(0)?))?.flatten();
    let n = last.unwrap_or(0) + 1;
    let params = params![run.key, n, after as i64, body];
    tx.db.execute(include_str!("../../sql/insert_partial.sql"), params)?;
    if n > PARTIALS_MAX {
        let params = params![run.key, n - PARTIALS_MAX];
        tx.db.execute(include_str!("../../sql/drop_partials.sql"), params)?;
    }
    tx.touch(&run.head.run);
    Ok(())
}
