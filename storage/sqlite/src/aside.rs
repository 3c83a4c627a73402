//! Damaged runs: they are set aside, so that one of them stops no other, and nothing of them is
//! deleted. The doctor shows them.

use holdpoint_graph::{QueueId, RunId, SessionId};
use holdpoint_storage::StoreError;
use rusqlite::params;
use tracing::warn;

use crate::{
    fault::{Done, Fault},
    row::{self, RunRow},
    tx::Tx,
};

/// A run as it was read, or none after a damaged one was set aside.
pub(crate) fn sound<T>(tx: &mut Tx<'_>, key: i64, read: Done<T>) -> Done<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Store(error @ StoreError::Corrupt { .. })) => {
            warn!(%error, "set a run aside that cannot be read");
            set_aside(tx, key)?;
            Ok(None)
        }
        Err(fault @ (Fault::Store(_) | Fault::Sql(_))) => Err(fault),
    }
}

/// The run with this key, or none after it was set aside.
pub(crate) fn run(tx: &mut Tx<'_>, key: i64) -> Done<Option<RunRow>> {
    let read = tx.db.run_by_key(key);
    sound(tx, key, read)
}

/// What was read of the run with this id, or none after a damaged one was set aside.
pub(crate) fn by_id<T>(tx: &mut Tx<'_>, run: &RunId, read: Done<T>) -> Done<Option<T>> {
    let sql = include_str!("../sql/key_of_run.sql");
    let found =
        |tx: &Tx<'_>| tx.db.one(sql, params![tx.db.ns, run.as_str()], |row| Ok(row.get(0)?));
    match read {
        Ok(value) => Ok(Some(value)),
        // A key that no row has sets nothing aside.
        Err(fault) => sound(tx, found(tx)?.unwrap_or(0), Err(fault)),
    }
}

/// Takes a run out of its namespace, its queue's count and its session's order.
pub(crate) fn set_aside(tx: &mut Tx<'_>, key: i64) -> Done<()> {
    let sql = include_str!("../sql/place_of_run.sql");
    let place = tx.db.one(sql, params![key, tx.db.ns], |row| {
        let text = |at: usize| row.get::<_, Option<String>>(at).ok().flatten();
        let turn = row.get::<_, Option<i64>>(3).ok().flatten();
        Ok((text(0), text(1), text(2), turn))
    })?;
    let Some((queue, status, session, turn)) = place else { return Ok(()) };
    tx.db.execute(include_str!("../sql/set_aside.sql"), [key])?;
    tx.db.execute(include_str!("../sql/set_questions_aside.sql"), [key])?;
    let queue = queue.and_then(|text| QueueId::new(text).ok());
    let status = status.and_then(|word| row::status(&word).ok());
    if let (Some(queue), Some(status)) = (queue, status) {
        tx.count(&queue, status, -1);
    }
    let session = session.and_then(|text| SessionId::new(text).ok());
    if let (Some(session), Some(_)) = (session, turn) {
        tx.next_in_session(&session)?;
    }
    Ok(())
}
