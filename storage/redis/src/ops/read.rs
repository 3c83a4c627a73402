//! Reads that several faces of the store share.

use holdpoint_graph::RunId;
use holdpoint_storage::{Cursor, RunHead, StoreResult};

use crate::{
    RedisStore,
    codec::{self, Parts},
    script::Script,
};

/// Which records of a journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) max: usize,
}

/// A row of an index.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) at_ms: i64,
    pub(super) member: String,
    /// The head of the run; none when it is gone or damaged.
    pub(super) head: Option<RunHead>,
}

/// An index and the direction in which it is read.
#[derive(Debug, Clone)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) is_down: bool,
}

/// Records of one reply.
const RECORDS_MAX: usize = 100_000;

impl RedisStore {
    /// What `read` answers about a run: head, end of its lease, and what was asked for.
    pub(super) async fn read(
        &self,
        run: &RunId,
        what: &str,
        range: Option<Range>,
    ) -> StoreResult<Option<Parts>> {
        let mut call = self.conn.call(Script::Read).await?;
        call.arg(run.as_str()).arg(what);
        if let Some(range) = range {
            call.number(range.from).number(range.max.min(RECORDS_MAX));
        }
        let parts = Parts::of(self.conn.ask(call).await?, "a run")?;
        Ok((parts.left() > 0).then_some(parts))
    }

    /// Rows of an index behind a place.
    pub(super) async fn page(
        &self,
        index: &Index,
        after: Option<&Cursor>,
        max: usize,
    ) -> StoreResult<Vec<Row>> {
        let mut call = self.conn.call(Script::Page).await?;
        call.arg(&index.name).arg(if index.is_down { "down" } else { "up" });
        call.arg(after.map_or_else(String::new, |cursor| cursor.at_ms.to_string()));
        call.arg(after.map_or("", |cursor| cursor.id.as_str())).number(max);
        let mut parts = Parts::of(self.conn.ask(call).await?, "a page")?;
        let mut rows = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            rows.push(row(parts.parts()?)?);
        }
        Ok(rows)
    }
}

fn row(mut parts: Parts) -> StoreResult<Row> {
    let at_ms = parts.number()?;
    let member = parts.text()?;
    let run = member.rsplit(' ').next().unwrap_or_default().to_owned();
    let fields = parts.next()?;
    let is_head = matches!(fields, redis::Value::Array(_));
    let head = if is_head { codec::row_head(&run, fields, &mut parts)? } else { None };
    Ok(Row { at_ms, member, head })
}
