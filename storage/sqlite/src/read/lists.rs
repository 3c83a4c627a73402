//! Lists over runs, page by page.

use holdpoint_graph::{GraphId, limits::PAGE_MAX};
use holdpoint_storage::{Cursor, Page, RunFilter, RunHead, StoreError};
use rusqlite::params;

use crate::{
    db::Db,
    fault::{Done, Fault},
    row,
};

/// Heads that one call looks at: a filter that fits few runs gives short pages, not slow ones.
const LOOK_MAX: usize = 1_000;

/// Runs, newest first.
pub(crate) fn runs(
    db: &Db,
    filter: &RunFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> Done<Page<RunHead>> {
    page(db, after, limit, |head| filter.accepts(head))
}

/// Runs of a graph that are pinned to a structure and have not ended.
pub(crate) fn pinned(db: &Db, graph: &GraphId, after: Option<&Cursor>) -> Done<Page<RunHead>> {
    page(db, after, PAGE_MAX, |head| {
        head.graph == *graph && head.fingerprint.is_some() && !head.status().is_terminal()
    })
}

fn page<F>(db: &Db, after: Option<&Cursor>, limit: usize, is_shown: F) -> Done<Page<RunHead>>
where
    F: Fn(&RunHead) -> bool,
{
    let mut statement = db.conn.prepare_cached(include_str!("../../sql/runs_before.sql"))?;
    let (at_ms, before) = place(after, i64::MAX);
    let mut found = statement.query(params![db.ns, at_ms, before, LOOK_MAX as i64 + 1])?;
    let mut page = Page { rows: Vec::new(), next: None };
    let mut last = None;
    for looked_at in 0.. {
        let Some(row) = found.next()? else { return Ok(page) };
        if looked_at == LOOK_MAX || page.rows.len() == limit {
            break;
        }
        last = Some(Cursor { at_ms: row.get("created_ms")?, id: row.get("id")? });
        let read = readable(row::decode(row, &db.lanes()))?;
        if let Some(head) = read.map(|run| run.head).filter(&is_shown) {
            page.rows.push(head);
        }
    }
    page.next = last.or_else(|| after.cloned());
    Ok(page)
}

/// What is damaged is left out of lists, and stops none; the doctor shows it.
pub(crate) fn readable<T>(read: Done<T>) -> Done<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Store(StoreError::Corrupt { .. })) => Ok(None),
        Err(fault @ (Fault::Store(_) | Fault::Sql(_))) => Err(fault),
    }
}

/// Where a list goes on: behind the cursor, or from its beginning.
fn place(after: Option<&Cursor>, start_ms: i64) -> (i64, &str) {
    after.map_or((start_ms, ""), |cursor| (cursor.at_ms, cursor.id.as_str()))
}
