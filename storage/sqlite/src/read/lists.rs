//! Lists over runs and questions, page by page.

use holdpoint_graph::{Code, GraphId, InterruptId, Refusal, RunId, limits::PAGE_MAX};
use holdpoint_storage::{Cursor, OpenQuestion, Page, RunFilter, RunHead, StoreError};
use rusqlite::{Row, params};

use crate::{
    db::{Db, id},
    fault::{Done, Fault},
    row::{self, RunRow},
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

/// A damaged run is left out of lists, and stops none; the doctor shows it.
fn readable(read: Done<RunRow>) -> Done<Option<RunRow>> {
    match read {
        Ok(run) => Ok(Some(run)),
        Err(Fault::Store(StoreError::Corrupt { .. })) => Ok(None),
        Err(fault @ (Fault::Store(_) | Fault::Sql(_))) => Err(fault),
    }
}

/// Where a list goes on: behind the cursor, or from its beginning.
fn place(after: Option<&Cursor>, start_ms: i64) -> (i64, &str) {
    after.map_or((start_ms, ""), |cursor| (cursor.at_ms, cursor.id.as_str()))
}

/// A question without the head of its run.
struct Found {
    run: i64,
    interrupt: InterruptId,
    opened_at_ms: i64,
    body: Vec<u8>,
}

impl Found {
    fn read(row: &Row<'_>) -> Done<Self> {
        let (run, opened_at_ms, body) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok(Self { run, interrupt: id(row, 1)?, opened_at_ms, body })
    }

    /// Two runs may have questions of one id, so the run is a part of the place.
    fn cursor(&self) -> Cursor {
        Cursor { at_ms: self.opened_at_ms, id: format!("{}:{}", self.interrupt, self.run) }
    }
}

/// Open questions, oldest first; of one run, or of all.
pub(crate) fn questions(
    db: &Db,
    run: Option<&RunId>,
    after: Option<&Cursor>,
    limit: usize,
) -> Done<Page<OpenQuestion>> {
    let (at_ms, behind) = place(after, i64::MIN);
    let (behind, key) = match behind.rsplit_once(':') {
        Some((interrupt, key)) => (interrupt, key.parse::<i64>().map_err(|_| bad_cursor(key))?),
        None => (behind, i64::MAX),
    };
    let one_more = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut found = match run {
        None => {
            let sql = include_str!("../../sql/questions_after.sql");
            db.all(sql, params![db.ns, at_ms, behind, key, one_more], Found::read)?
        }
        Some(run) => {
            let nothing = Page { rows: Vec::new(), next: None };
            let Some(run) = db.run_by_id(run)? else { return Ok(nothing) };
            let sql = include_str!("../../sql/run_questions_after.sql");
            db.all(sql, params![run.key, at_ms, behind, key, one_more], Found::read)?
        }
    };
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(Found::cursor);
    let mut rows = Vec::with_capacity(found.len());
    for Found { run, interrupt, opened_at_ms, body } in found {
        if let Some(run) = readable(db.run_by_key(run))? {
            rows.push(OpenQuestion { head: run.head, interrupt, opened_at_ms, body });
        }
    }
    Ok(Page { rows, next })
}

fn bad_cursor(key: &str) -> Refusal {
    Refusal::new(Code::Cursor, "the cursor", format!("ends in {key:?}, which is no number"))
}
