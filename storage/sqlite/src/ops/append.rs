//! Events by whoever is not the owner: cancel, edit, redrive, migrate.

use holdpoint_graph::{Fingerprint, Life, RunStatus};
use holdpoint_storage::{AppendKind, AppendReply, AppendRequest, CancelWish};

use crate::{
    fault::Done,
    ops::commit::{append_record, show},
    row::RunRow,
    tx::{Tx, remember},
};

/// Appends an event to a run that nobody has, with what it does to the run.
pub(crate) fn append(
    tx: &mut Tx<'_>,
    request: &AppendRequest,
    kind: &AppendKind,
) -> Done<AppendReply> {
    let Some(mut run) = tx.db.run_by_id(&request.run)? else { return Ok(AppendReply::NotFound) };
    let status = run.head.status();
    let is_cancelled = matches!((kind, status), (AppendKind::Cancel { .. }, RunStatus::Cancelled));
    if run.knows(&request.request) || is_cancelled {
        return Ok(AppendReply::Done { status, durability: tx.db.durability });
    }
    if let (AppendKind::Cancel { rollback }, RunStatus::Running) = (kind, status) {
        return wish(tx, run, *rollback);
    }
    if !may(kind, &run) {
        return Ok(AppendReply::WrongState { status });
    }
    if request.from != run.head.seq || request.previous != run.head.hash {
        return Ok(AppendReply::Moved);
    }
    append_record(tx, &mut run, &request.record)?;
    run.head.hash = request.hash.clone();
    run.head.updated_at_ms = tx.now_ms;
    remember(&mut run, &request.request);
    apply(tx, &mut run, kind)?;
    tx.save(&mut run)?;
    Ok(AppendReply::Done { status: run.head.status(), durability: tx.db.durability })
}

/// The run is with a worker: it is told, and ends the run.
fn wish(tx: &mut Tx<'_>, mut run: RunRow, rollback: bool) -> Done<AppendReply> {
    if run.head.cancel.is_none() {
        let wish = if rollback { CancelWish::RolledBack } else { CancelWish::Asked };
        run.head.cancel = Some(wish);
        run.head.updated_at_ms = tx.now_ms;
        tx.save(&mut run)?;
    }
    Ok(AppendReply::Cancelling)
}

/// Whether the run's state allows it.
fn may(kind: &AppendKind, run: &RunRow) -> bool {
    match (kind, run.head.status()) {
        (
            AppendKind::Cancel { .. },
            RunStatus::Scheduled | RunStatus::Queued | RunStatus::Parked,
        )
        | (AppendKind::Edit { .. }, RunStatus::Parked)
        | (AppendKind::Redrive, RunStatus::Failed) => true,
        (
            AppendKind::Migrate { from, .. },
            RunStatus::Scheduled | RunStatus::Queued | RunStatus::Parked,
        ) => run.head.fingerprint.as_ref() == Some(from),
        (
            AppendKind::Cancel { .. }
            | AppendKind::Edit { .. }
            | AppendKind::Redrive
            | AppendKind::Migrate { .. },
            RunStatus::Scheduled
            | RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Parked
            | RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled,
        ) => false,
    }
}

fn apply(tx: &Tx<'_>, run: &mut RunRow, kind: &AppendKind) -> Done<()> {
    match kind {
        AppendKind::Cancel { rollback } => {
            run.is_rolled_back = *rollback;
            run.change(Life::cancel).map_err(|error| run.broken(&error))
        }
        AppendKind::Edit { shown } => show(tx, run, shown),
        AppendKind::Redrive => {
            run.change(Life::redrive).map_err(|error| run.broken(&error))?;
            run.head.finished_at_ms = None;
            run.head.lost_in_row = 0;
            run.head.lost_in_life = 0;
            run.head.losses.clear();
            Ok(())
        }
        AppendKind::Migrate { to, .. } => pin(tx, run, to),
    }
}

/// Pins a run to a structure, which is another lane.
pub(crate) fn pin(tx: &Tx<'_>, run: &mut RunRow, to: &Fingerprint) -> Done<()> {
    run.head.fingerprint = Some(to.clone());
    run.lane = tx.lane(&run.head.lane())?;
    Ok(())
}
