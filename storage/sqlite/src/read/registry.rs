//! Counts, workers and graphs.

use holdpoint_graph::{Fingerprint, RunStatus, WorkerId};
use holdpoint_storage::{GraphRecord, LaneStats, Stats, WorkerRecord};
use rusqlite::params;

use crate::{
    db::{Db, graph, id},
    fault::{Done, corrupt},
    row::status,
};

/// Counts.
pub(crate) fn stats(db: &Db, now_ms: i64) -> Done<Stats> {
    let questions = db.number(include_str!("../../sql/count_questions.sql"), [db.ns])?;
    Ok(Stats {
        now_ms,
        counts: counts(db)?,
        lanes: lanes(db)?,
        open_questions: questions as u64,
        paused: db.paused()?,
    })
}

fn counts(db: &Db) -> Done<Vec<(RunStatus, u64)>> {
    let sql = include_str!("../../sql/status_counts.sql");
    let found = db.all(sql, [db.ns], |row| {
        let (word, count): (String, i64) = (row.get(0)?, row.get(1)?);
        let count = u64::try_from(count)
            .map_err(|_| corrupt("the counts", format!("{count} runs are {word}")))?;
        Ok((status(&word)?, count))
    })?;
    let count = |status| found.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
    Ok(RunStatus::ALL.into_iter().map(|status| (status, count(status))).collect())
}

fn lanes(db: &Db) -> Done<Vec<LaneStats>> {
    db.all(include_str!("../../sql/lane_counts.sql"), [db.ns], |row| {
        let (lane, queued, first): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let created = include_str!("../../sql/created.sql");
        Ok(LaneStats {
            lane: db.lanes().get(lane)?,
            queued: queued as u64,
            oldest_created_ms: db.one(created, [first], |row| Ok(row.get(0)?))?,
        })
    })
}

/// The workers that are known.
pub(crate) fn workers(db: &Db) -> Done<Vec<WorkerRecord>> {
    let found = db.all(include_str!("../../sql/workers.sql"), [db.ns], |row| {
        let (worker, text): (WorkerId, String) = (id(row, 0)?, row.get(1)?);
        let record: WorkerRecord = serde_json::from_str(&text)
            .map_err(|error| corrupt(format!("worker {worker}"), error))?;
        Ok(record)
    })?;
    let with_runs = |record: WorkerRecord| {
        let sql = include_str!("../../sql/held_by_worker.sql");
        let params = params![db.ns, record.worker.as_str()];
        let runs = db.all(sql, params, |row| id(row, 1))?;
        Ok(WorkerRecord { runs, ..record })
    };
    found.into_iter().map(with_runs).collect()
}

/// The graphs that were published.
pub(crate) fn graphs(db: &Db) -> Done<Vec<GraphRecord>> {
    db.all(include_str!("../../sql/graphs.sql"), [db.ns], |row| {
        let fingerprint: String = row.get(1)?;
        Ok(GraphRecord {
            graph: graph(row, 0)?,
            fingerprint: Fingerprint::from_text(&fingerprint),
            drawing: row.get(2)?,
            published_at_ms: row.get(3)?,
        })
    })
}
