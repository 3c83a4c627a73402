//! Upkeep: taking runs from workers whose lease ended, firing timers, claiming what must end.

use holdpoint_graph::{Life, RunId};
use holdpoint_storage::{ClaimedRun, StoreError, TickRequest, Ticked};
use rusqlite::params;

use crate::{
    aside,
    fault::{Done, Fault},
    ops::{
        claim::{Taker, fire, take},
        lease::lose,
    },
    tx::Tx,
};

/// A tick sooner after the last one, whoever's that was, finds nothing new to do; but half of the
/// gap that holds is soon enough for any.
const TICK_MS_MIN: i64 = 200;
/// How long a worker without a sign of life stays on the list, in ms: a day.
const WORKER_MS_MAX: i64 = 24 * 3_600 * 1_000;

/// What the last ticks left.
struct State {
    last_tick_ms: Option<i64>,
    hold_until_ms: i64,
    lease_ms_max: i64,
}

/// Reaps, fires timers, and claims what must end.
pub(crate) fn tick(tx: &mut Tx<'_>, request: &TickRequest) -> Done<Ticked> {
    let now_ms = tx.now_ms;
    let state = state(tx)?;
    let gap_ms = state.last_tick_ms.map(|last_ms| now_ms - last_ms);
    let held_until_ms = |until_ms: i64| (until_ms > now_ms).then_some(until_ms);
    let soon_ms = TICK_MS_MIN.min(request.hold_after_ms / 2);
    if !request.doubt && gap_ms.is_some_and(|gap_ms| (0..soon_ms).contains(&gap_ms)) {
        let held_until_ms = held_until_ms(state.hold_until_ms);
        return Ok(Ticked { now_ms, held_until_ms, ..Ticked::default() });
    }
    let has_stalled = gap_ms.is_some_and(|gap_ms| gap_ms < 0 || gap_ms > request.hold_after_ms);
    let hold_until_ms = if request.doubt || has_stalled {
        now_ms.saturating_add(state.lease_ms_max)
    } else {
        state.hold_until_ms
    };
    let sql = include_str!("../../sql/put_tick_state.sql");
    tx.db.execute(sql, params![tx.db.ns, now_ms, hold_until_ms])?;
    let held_until_ms = held_until_ms(hold_until_ms);
    let sql = include_str!("../../sql/pull_back_leases.sql");
    tx.db.execute(sql, params![tx.db.ns, now_ms.saturating_add(state.lease_ms_max)])?;
    let reaped = if held_until_ms.is_none() { reap(tx, request)? } else { Vec::new() };
    let fired = fire(tx, request.max)?;
    let closing = closing(tx, request)?;
    let sql = include_str!("../../sql/forget_workers.sql");
    tx.db.execute(sql, params![tx.db.ns, now_ms - WORKER_MS_MAX])?;
    Ok(Ticked { now_ms, held_until_ms, reaped, fired, closing })
}

fn state(tx: &Tx<'_>) -> Done<State> {
    let found = tx.db.one(include_str!("../../sql/tick_state.sql"), [tx.db.ns], |row| {
        Ok(State {
            last_tick_ms: row.get(0)?,
            hold_until_ms: row.get(1)?,
            lease_ms_max: row.get(2)?,
        })
    });
    found?.ok_or_else(|| Fault::Store(StoreError::Reset { namespace: tx.db.namespace.to_string() }))
}

fn limit(request: &TickRequest) -> i64 {
    i64::try_from(request.max).unwrap_or(i64::MAX)
}

/// Takes runs from workers whose lease ended.
fn reap(tx: &mut Tx<'_>, request: &TickRequest) -> Done<Vec<RunId>> {
    let before_ms = tx.now_ms.saturating_sub(request.grace_ms);
    let sql = include_str!("../../sql/overdue.sql");
    let params = params![tx.db.ns, before_ms, limit(request)];
    let overdue: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    let mut reaped = Vec::with_capacity(overdue.len());
    for key in overdue {
        let Some(run) = aside::run(tx, key)? else { continue };
        reaped.push(run.head.run.clone());
        lose(tx, run, "lease expired", &request.loss_delays_ms)?;
    }
    Ok(reaped)
}

/// Claims runs without an owner that must end, whatever their lane and turn.
fn closing(tx: &mut Tx<'_>, request: &TickRequest) -> Done<Vec<ClaimedRun>> {
    let sql = include_str!("../../sql/closing.sql");
    let params = params![tx.db.ns, tx.now_ms, limit(request)];
    let keys: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    let taker =
        Taker { worker: &request.worker, nonce: &request.nonce, lease_ms: request.lease_ms };
    let mut closing = Vec::with_capacity(keys.len());
    for key in keys {
        let Some(mut run) = aside::run(tx, key)? else { continue };
        // The wish, or the end of the time, is what makes it claimable now.
        match run.head.life {
            Life::Scheduled { .. } | Life::Parked { .. } => run.head.life = Life::Queued,
            Life::Queued => {}
            // It has an owner or has ended, and only the index says that it must end.
            Life::Running { .. } | Life::Completed | Life::Failed { .. } | Life::Cancelled => {
                tx.save(&mut run)?;
                continue;
            }
        }
        closing.extend(take(tx, run, &taker)?);
    }
    Ok(closing)
}
