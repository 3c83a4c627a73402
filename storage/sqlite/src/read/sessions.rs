//! Sessions and their orders.

use holdpoint_graph::{GraphId, RunId, SessionId};
use holdpoint_storage::{Cursor, Page, SessionRecord};
use rusqlite::{Row, params};

use crate::{
    db::{Db, graph, id},
    fault::Done,
};

/// A session.
pub(crate) fn session(db: &Db, session: &SessionId) -> Done<Option<SessionRecord>> {
    let sql = include_str!("../../sql/session_by_id.sql");
    let found = db.one(sql, params![db.ns, session.as_str()], names)?;
    found.map(|(session, graph)| record(db, session, graph)).transpose()
}

/// Sessions by id.
pub(crate) fn sessions(db: &Db, after: Option<&Cursor>, limit: usize) -> Done<Page<SessionRecord>> {
    let sql = include_str!("../../sql/sessions_after.sql");
    let behind = after.map_or("", |cursor| cursor.id.as_str());
    let one_more = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut found = db.all(sql, params![db.ns, behind, one_more], names)?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| has_more)
        .map(|(session, _)| Cursor { at_ms: 0, id: session.to_string() });
    let rows = found.into_iter().map(|(session, graph)| record(db, session, graph));
    Ok(Page { rows: rows.collect::<Done<_>>()?, next })
}

fn names(row: &Row<'_>) -> Done<(SessionId, GraphId)> {
    Ok((id(row, 0)?, graph(row, 1)?))
}

fn record(db: &Db, session: SessionId, graph: GraphId) -> Done<SessionRecord> {
    let params = params![db.ns, session.as_str()];
    let sql = include_str!("../../sql/session_order.sql");
    let mut order = db.all(sql, params, |row| id(row, 0))?.into_iter();
    let active: Option<RunId> = order.next();
    let waiting = order.collect();
    let last = db.session_last(session.as_str())?;
    let runs = db.number(include_str!("../../sql/session_size.sql"), params)? as u64;
    Ok(SessionRecord { session, graph, active, waiting, last, runs })
}
