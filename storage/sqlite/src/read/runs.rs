//! One run: its head, its journal, its inbox and its partial results.

use holdpoint_graph::RunId;
use holdpoint_storage::{InboxEntry, JournalPart, Partial, RunHead};
use rusqlite::params;

use crate::{
    db::Db,
    fault::{Done, corrupt},
    row::what,
};

/// The head of a run.
pub(crate) fn head(db: &Db, run: &RunId) -> Done<Option<RunHead>> {
    let found = db.run_by_id(run)?.map(|run| run.head);
    if found.is_none() && is_aside(db, run)? {
        return Err(corrupt(what(run), "it was set aside because it could not be read"));
    }
    Ok(found)
}

fn is_aside(db: &Db, run: &RunId) -> Done<bool> {
    let sql = include_str!("../../sql/key_of_aside.sql");
    Ok(db.one(sql, params![db.ns, run.as_str()], |_| Ok(()))?.is_some())
}

/// The envelope of a run.
pub(crate) fn payload(db: &Db, run: &RunId) -> Done<Option<Vec<u8>>> {
    db.run_by_id(run)?.map(|run| db.payload(&run)).transpose()
}

/// Records from `from` on, at most `max`.
pub(crate) fn journal(db: &Db, run: &RunId, from: u64, max: usize) -> Done<Option<JournalPart>> {
    let Some(run) = db.run_by_id(run)? else { return Ok(None) };
    let records = db.events(&run, from, max)?;
    Ok(Some(JournalPart { head: run.head, snapshot: None, from, records }))
}

/// The newest snapshot and the records after it.
pub(crate) fn checkpoint(db: &Db, run: &RunId) -> Done<Option<JournalPart>> {
    let Some(run) = db.run_by_id(run)? else { return Ok(None) };
    let from = run.head.snapshot_seq;
    let snapshot = db.snapshot(&run)?;
    let records = db.events(&run, from, usize::MAX)?;
    Ok(Some(JournalPart { head: run.head, snapshot, from, records }))
}

/// The answers that wait for a run.
pub(crate) fn inbox(db: &Db, run: &RunId) -> Done<Vec<InboxEntry>> {
    let Some(run) = db.run_by_id(run)? else { return Ok(Vec::new()) };
    db.inbox(&run)
}

/// Partial results after number `after`.
pub(crate) fn partials(db: &Db, run: &RunId, after: u64) -> Done<Vec<Partial>> {
    let Some(run) = db.run_by_id(run)? else { return Ok(Vec::new()) };
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let sql = include_str!("../../sql/partials_after.sql");
    let number = |value: i64| {
        u64::try_from(value)
            .map_err(|_| corrupt(what(&run.head.run), "a partial result has a negative number"))
    };
    db.all(sql, params![run.key, after], |row| {
        let (n, after) = (number(row.get(0)?)?, number(row.get(1)?)?);
        Ok(Partial { n, after, body: row.get(2)? })
    })
}
