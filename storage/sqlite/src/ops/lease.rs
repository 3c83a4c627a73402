//! Keeping leases, giving them back, and taking them from workers that are gone.

use holdpoint_graph::{LifeError, RunId, WorkerId};
use holdpoint_storage::{Lease, Loss, Renewal};
use rusqlite::params;

use crate::{aside, fault::Done, row::RunRow, tx::Tx};

/// Keeps leases for `lease_ms` from now; the answers are in the order of the leases.
pub(crate) fn renew(tx: &mut Tx<'_>, leases: &[Lease], lease_ms: i64) -> Done<Vec<Renewal>> {
    let deadline_ms = tx.now_ms.saturating_add(lease_ms);
    leases.iter().map(|lease| renew_one(tx, lease, deadline_ms)).collect()
}

fn renew_one(tx: &mut Tx<'_>, lease: &Lease, deadline_ms: i64) -> Done<Renewal> {
    let read = tx.db.run_by_id(&lease.run);
    let Some(Some(mut run)) = aside::by_id(tx, &lease.run, read)? else {
        return Ok(Renewal::Fenced);
    };
    match run.change(|life| life.renew(&lease.pair, deadline_ms)) {
        Ok(()) => {
            tx.save(&mut run)?;
            let (cancel, has_inbox) = (run.head.cancel.is_some(), run.inbox_count > 0);
            Ok(Renewal::Kept { cancel, has_inbox })
        }
        Err(LifeError::Fenced | LifeError::Illegal { .. } | LifeError::NotDue { .. }) => {
            Ok(Renewal::Fenced)
        }
    }
}

/// Hands a run back, claimable now; the claim does not count. False: fenced.
pub(crate) fn release(tx: &mut Tx<'_>, lease: &Lease) -> Done<bool> {
    let Some(mut run) = tx.db.run_by_id(&lease.run)? else { return Ok(false) };
    if run.change(|life| life.release(&lease.pair)).is_err() {
        return Ok(false);
    }
    run.head.lost_in_row = run.head.lost_in_row.saturating_sub(1);
    run.head.lost_in_life = run.head.lost_in_life.saturating_sub(1);
    run.head.updated_at_ms = tx.now_ms;
    tx.save(&mut run)?;
    Ok(true)
}

/// A worker is gone, by the word of who saw it: its runs are claimable again.
pub(crate) fn lost(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    evidence: &str,
    loss_delays_ms: &[i64],
) -> Done<Vec<RunId>> {
    let sql = include_str!("../../sql/held_by_worker.sql");
    let params = params![tx.db.ns, worker.as_str()];
    let held: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    let mut runs = Vec::with_capacity(held.len());
    for key in held {
        let Some(held) = aside::run(tx, key)? else { continue };
        runs.push(held.head.run.clone());
        lose(tx, held, evidence, loss_delays_ms)?;
    }
    leave(tx, worker)?;
    Ok(runs)
}

/// A worker ended; it is taken off the list.
pub(crate) fn leave(tx: &Tx<'_>, worker: &WorkerId) -> Done<()> {
    let sql = include_str!("../../sql/hide_worker.sql");
    tx.db.execute(sql, params![tx.db.ns, worker.as_str()])?;
    Ok(())
}

/// Takes a run from a worker that is gone; it waits the longer the more were lost in a row.
pub(crate) fn lose(
    tx: &mut Tx<'_>,
    mut run: RunRow,
    evidence: &str,
    loss_delays_ms: &[i64],
) -> Done<()> {
    let holdpoint_graph::Life::Running { lease } = &run.head.life else { return Ok(()) };
    run.head.losses.push(Loss {
        worker: lease.worker.clone(),
        epoch: run.head.epoch,
        claimed_at_ms: run.claimed_ms.unwrap_or(run.head.updated_at_ms),
        lost_at_ms: tx.now_ms,
        evidence: evidence.to_owned(),
    });
    let nth = (run.head.lost_in_row as usize).saturating_sub(1);
    let delay_ms = loss_delays_ms.get(nth).or(loss_delays_ms.last()).copied().unwrap_or(0);
    let until_ms = tx.now_ms.saturating_add(delay_ms);
    run.change(|life| life.lose(until_ms, tx.now_ms)).map_err(|error| run.broken(&error))?;
    run.head.updated_at_ms = tx.now_ms;
    tx.save(&mut run)
}
