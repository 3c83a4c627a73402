//! Deleting: ended runs that are old enough, and sessions.

use holdpoint_graph::{RunStatus, SessionId};
use holdpoint_storage::Retention;
use rusqlite::params;

use crate::{aside, fault::Done, row::RunRow, tx::Tx};

/// What deletes the parts of a run.
pub(super) const PARTS: [&str; 6] = [
    include_str!("../../sql/delete_payload.sql"),
    include_str!("../../sql/delete_events.sql"),
    include_str!("../../sql/delete_snapshot.sql"),
    include_str!("../../sql/delete_inbox.sql"),
    include_str!("../../sql/delete_interrupts.sql"),
    include_str!("../../sql/delete_partials.sql"),
];

/// Deletes ended runs that are old enough, at most `max`; never the last of a session.
pub(crate) fn prune(tx: &mut Tx<'_>, retention: Retention, max: usize) -> Done<usize> {
    let mut pruned = 0;
    let kinds = [
        (RunStatus::Completed, retention.done_ms),
        (RunStatus::Cancelled, retention.done_ms),
        (RunStatus::Failed, retention.failed_ms),
    ];
    for (status, kept_ms) in kinds {
        let before_ms = tx.now_ms.saturating_sub(kept_ms);
        let limit = i64::try_from(max - pruned).unwrap_or(i64::MAX);
        let params = params![tx.db.ns, status.as_str(), before_ms, limit];
        let sql = include_str!("../../sql/prunable.sql");
        let keys: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
        for key in keys {
            let Some(run) = aside::run(tx, key)? else { continue };
            delete(tx, &run, retention.key_ms)?;
            pruned += 1;
        }
    }
    let before_ms = tx.now_ms.saturating_sub(retention.key_ms);
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let sql = include_str!("../../sql/delete_old_idempotency.sql");
    tx.db.execute(sql, params![tx.db.ns, before_ms, limit])?;
    Ok(pruned)
}

/// Deletes a session and its runs. False: a run of it is active or will be. None: unknown.
pub(crate) fn delete_session(tx: &mut Tx<'_>, session: &SessionId) -> Done<Option<bool>> {
    let params = params![tx.db.ns, session.as_str()];
    let sql = include_str!("../../sql/session_graph.sql");
    if tx.db.one(sql, params, |_| Ok(()))?.is_none() {
        return Ok(None);
    }
    if tx.db.number(include_str!("../../sql/is_session_busy.sql"), params)? == 1 {
        return Ok(Some(false));
    }
    let sql = include_str!("../../sql/session_runs.sql");
    let keys: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    for key in keys {
        let Some(run) = aside::run(tx, key)? else { continue };
        delete(tx, &run, Retention::default().key_ms)?;
    }
    tx.db.execute(include_str!("../../sql/delete_session.sql"), params)?;
    Ok(Some(true))
}

/// Deletes all of a run but its idempotency key, which lives for `key_ms` at least.
fn delete(tx: &mut Tx<'_>, run: &RunRow, key_ms: i64) -> Done<()> {
    tx.db.execute(include_str!("../../sql/delete_run.sql"), [run.key])?;
    for sql in PARTS {
        tx.db.execute(sql, [run.key])?;
    }
    let head = &run.head;
    if let Some(key) = &run.idempotency {
        if head.created_at_ms.saturating_add(key_ms) > tx.now_ms {
            let params = params![tx.db.ns, key.as_str(), head.status().as_str()];
            tx.db.execute(include_str!("../../sql/end_idempotency.sql"), params)?;
        } else {
            let params = params![tx.db.ns, key.as_str()];
            tx.db.execute(include_str!("../../sql/delete_idempotency.sql"), params)?;
        }
    }
    tx.count(&head.queue, head.status(), -1);
    tx.touch(&head.run);
    Ok(())
}
