//! Workers, graphs and queues: what is known besides runs.

use holdpoint_graph::QueueId;
use holdpoint_storage::{GraphRecord, WorkerRecord};
use rusqlite::params;

use crate::{
    fault::{Done, corrupt},
    tx::Tx,
};

/// A worker's sign of life.
pub(crate) fn beat(tx: &Tx<'_>, record: &WorkerRecord) -> Done<()> {
    let record = WorkerRecord { beat_at_ms: tx.now_ms, runs: Vec::new(), ..record.clone() };
    let what = || format!("worker {}", record.worker);
    let text = serde_json::to_string(&record).map_err(|error| corrupt(what(), error))?;
    let params = params![tx.db.ns, record.worker.as_str(), text, tx.now_ms];
    tx.db.execute(include_str!("../../sql/beat.sql"), params)?;
    Ok(())
}

/// Publishes a graph.
pub(crate) fn publish(tx: &Tx<'_>, record: &GraphRecord) -> Done<()> {
    let (graph, fingerprint) = (record.graph.as_str(), record.fingerprint.as_str());
    let params = params![tx.db.ns, graph, fingerprint, record.drawing, tx.now_ms];
    tx.db.execute(include_str!("../../sql/publish.sql"), params)?;
    Ok(())
}

/// Pauses or resumes a queue.
pub(crate) fn pause(tx: &mut Tx<'_>, queue: &QueueId, paused: bool) -> Done<()> {
    let sql = if paused {
        include_str!("../../sql/pause_queue.sql")
    } else {
        include_str!("../../sql/resume_queue.sql")
    };
    tx.db.execute(sql, params![tx.db.ns, queue.as_str()])?;
    if !paused {
        tx.resumed();
    }
    Ok(())
}
