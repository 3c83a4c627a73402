//! A connection with the namespace it serves, and what readers and the writer read alike.

use std::{cell::RefCell, collections::HashMap};

use holdpoint_graph::{Fingerprint, GraphId, Id, Kind, Namespace, QueueId, RunId};
use holdpoint_storage::{Durability, InboxEntry, Lane, open_payload};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::{
    fault::{Done, corrupt},
    row::{self, RunRow},
};

/// A connection, and the number of the namespace in the file.
#[derive(Debug)]
pub(crate) struct Db {
    pub(crate) conn: Connection,
    pub(crate) ns: i64,
    pub(crate) namespace: Namespace,
    pub(crate) durability: Durability,
    pub(crate) lane_cache: RefCell<LaneCache>,
}

/// The lanes by number and numbers by lane. Stored lanes are never changed or deleted, so what
/// was read once is true for ever; only a rollback may take a new one back.
#[derive(Debug, Default)]
pub(crate) struct LaneCache {
    by_number: HashMap<i64, Lane>,
    by_lane: HashMap<Lane, i64>,
}

impl LaneCache {
    pub(crate) fn insert(&mut self, number: i64, lane: Lane) {
        self.by_lane.insert(lane.clone(), number);
        self.by_number.insert(number, lane);
    }

    pub(crate) fn clear(&mut self) {
        self.by_number.clear();
        self.by_lane.clear();
    }
}

/// Gives lanes by their numbers while a row is decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes<'d>(&'d Db);

impl Lanes<'_> {
    pub(crate) fn get(&self, number: i64) -> Done<Lane> {
        self.0.lane(number)
    }
}

impl Db {
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Done<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    /// The first row, if there is one.
    pub(crate) fn one<T, F>(&self, sql: &str, params: impl Params, read: F) -> Done<Option<T>>
    where
        F: FnOnce(&Row<'_>) -> Done<T>,
    {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// All rows.
    pub(crate) fn all<T, F>(&self, sql: &str, params: impl Params, mut read: F) -> Done<Vec<T>>
    where
        F: FnMut(&Row<'_>) -> Done<T>,
    {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// The first column of the only row of a statement that always has one.
    pub(crate) fn number(&self, sql: &str, params: impl Params) -> Done<i64> {
        Ok(self.conn.prepare_cached(sql)?.query_row(params, |row| row.get(0))?)
    }

    pub(crate) const fn lanes(&self) -> Lanes<'_> {
        Lanes(self)
    }

    /// A run by its id.
    pub(crate) fn run_by_id(&self, run: &RunId) -> Done<Option<RunRow>> {
        let sql = include_str!("../sql/run_by_id.sql");
        self.one(sql, params![self.ns, run.as_str()], |row| row::decode(row, &self.lanes()))
    }

    /// A run by its key, which an index has just named.
    pub(crate) fn run_by_key(&self, key: i64) -> Done<RunRow> {
        let sql = include_str!("../sql/run_by_key.sql");
        self.one(sql, [key], |row| row::decode(row, &self.lanes()))?
            .ok_or_else(|| corrupt(format!("the run with key {key}"), "an index names it in vain"))
    }

    fn lane(&self, number: i64) -> Done<Lane> {
        if let Some(lane) = self.lane_cache.borrow().by_number.get(&number) {
            return Ok(lane.clone());
        }
        let lane = self
            .one(include_str!("../sql/lane_by_number.sql"), [number], |row| {
                let fingerprint: String = row.get(2)?;
                Ok(Lane {
                    queue: id(row, 0)?,
                    graph: id(row, 1)?,
                    fingerprint: (!fingerprint.is_empty())
                        .then(|| Fingerprint::from_text(&fingerprint)),
                })
            })
            .map_err(|fault| fault.in_what(|| format!("lane {number}")))?
            .ok_or_else(|| corrupt("a run", format!("its lane {number} is unknown")))?;
        self.lane_cache.borrow_mut().insert(number, lane.clone());
        Ok(lane)
    }

    /// The number of a lane, unless it never had a run.
    pub(crate) fn lane_number(&self, lane: &Lane) -> Done<Option<i64>> {
        if let Some(number) = self.lane_cache.borrow().by_lane.get(lane) {
            return Ok(Some(*number));
        }
        let sql = include_str!("../sql/lane_by_name.sql");
        let (queue, graph, fingerprint) = texts(lane);
        let number =
            self.one(sql, params![self.ns, queue, graph, fingerprint], |row| Ok(row.get(0)?))?;
        if let Some(number) = number {
            self.lane_cache.borrow_mut().insert(number, lane.clone());
        }
        Ok(number)
    }

    /// The envelope of a run.
    pub(crate) fn payload(&self, row: &RunRow) -> Done<Vec<u8>> {
        let sealed = self
            .one(include_str!("../sql/payload.sql"), [row.key], |row| Ok(row.get(0)?))?
            .ok_or_else(|| corrupt(row::what(&row.head.run), "it has no envelope"))?;
        Ok(open_payload(&self.namespace, &row.head.run, sealed)?)
    }

    /// The newest snapshot of a run.
    pub(crate) fn snapshot(&self, row: &RunRow) -> Done<Option<Vec<u8>>> {
        let sql = include_str!("../sql/snapshot.sql");
        let snapshot = self.one(sql, [row.key], |row| Ok(row.get(0)?))?;
        if snapshot.is_none() && row.head.snapshot_seq > 0 {
            return Err(corrupt(row::what(&row.head.run), "its snapshot is missing"));
        }
        Ok(snapshot)
    }

    /// At most `max` records of a run from `from` on.
    pub(crate) fn events(&self, row: &RunRow, from: u64, max: usize) -> Done<Vec<Vec<u8>>> {
        if from >= row.head.seq {
            return Ok(Vec::new());
        }
        let sql = include_str!("../sql/events.sql");
        let params = params![row.key, from as i64, i64::try_from(max).unwrap_or(i64::MAX)];
        self.all(sql, params, |row| Ok(row.get(0)?))
    }

    /// The answers that wait for a run.
    pub(crate) fn inbox(&self, row: &RunRow) -> Done<Vec<InboxEntry>> {
        if row.inbox_count == 0 {
            return Ok(Vec::new());
        }
        self.all(include_str!("../sql/inbox.sql"), [row.key], |row| {
            Ok(InboxEntry { key: row.get(0)?, record: row.get(1)? })
        })
    }

    /// Who is active in a session: its turn, and the key of its row.
    pub(crate) fn first_turn(&self, session: &str) -> Done<Option<(i64, i64)>> {
        let sql = include_str!("../sql/first_turn.sql");
        self.one(sql, params![self.ns, session], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The run whose state the next run of a session starts from.
    pub(crate) fn session_last(&self, session: &str) -> Done<Option<RunId>> {
        let sql = include_str!("../sql/session_last.sql");
        self.one(sql, params![self.ns, session], |row| id(row, 0))
    }

    /// The queues that are paused.
    pub(crate) fn paused(&self) -> Done<Vec<QueueId>> {
        self.all(include_str!("../sql/paused.sql"), [self.ns], |row| id(row, 0))
    }

    /// Whether a run could be claimed from one of the lanes.
    pub(crate) fn has_ready(&self, lanes: &[Lane]) -> Done<bool> {
        let paused = self.paused()?;
        for lane in lanes.iter().filter(|lane| !paused.contains(&lane.queue)) {
            let Some(number) = self.lane_number(lane)? else { continue };
            if self.number(include_str!("../sql/has_ready.sql"), [number])? == 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The texts of a lane as they are stored.
pub(crate) fn texts(lane: &Lane) -> (&str, &str, &str) {
    let fingerprint = lane.fingerprint.as_ref().map_or("", Fingerprint::as_str);
    (lane.queue.as_str(), lane.graph.as_str(), fingerprint)
}

/// The id in a column.
pub(crate) fn id<K: Kind>(row: &Row<'_>, column: usize) -> Done<Id<K>> {
    let text = row.get_ref(column)?.as_str().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })?;
    Id::new(text).map_err(|refusal| corrupt(format!("a stored {} id", K::NOUN), refusal))
}

/// The number of a namespace, which is entered when it is new.
pub(crate) fn namespace_number(conn: &Connection, namespace: &Namespace) -> rusqlite::Result<i64> {
    let find = || {
        let sql = include_str!("../sql/namespace.sql");
        conn.query_row(sql, [namespace.as_str()], |row| row.get(0)).optional()
    };
    if let Some(ns) = find()? {
        return Ok(ns);
    }
    conn.execute(include_str!("../sql/put_namespace.sql"), [namespace.as_str()])?;
    find()?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// A graph's id; named so that the type of a column is said where it is read.
pub(crate) fn graph(row: &Row<'_>, column: usize) -> Done<GraphId> {
    id(row, column)
}
