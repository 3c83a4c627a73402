//! Taking runs from lanes, and firing the timers that are due.

use std::cmp::Reverse;

use holdpoint_graph::{LeaseTerm, Life, Pair, RunId, WorkerId};
use holdpoint_storage::{ClaimRequest, ClaimedRun, Claims, InboxEntry, Lease, StoreError};
use rusqlite::params;

use crate::{
    aside,
    digests::Digests,
    fault::{Done, Fault, corrupt},
    row::{self, RunRow},
    tx::Tx,
};

/// Timers that a claim fires first.
const FIRE_MAX: usize = 100;
/// How many more runs are looked at than are wanted: some may have to be left.
const SPARE: usize = 16;

/// Takes runs from lanes.
pub(crate) fn claim(tx: &mut Tx<'_>, request: &ClaimRequest) -> Done<Claims> {
    fire(tx, FIRE_MAX)?;
    let mut nonces = nonces(tx, &request.worker)?;
    if nonces.has(&request.nonce) {
        return repeat(tx, request);
    }
    let taker =
        Taker { worker: &request.worker, nonce: &request.nonce, lease_ms: request.lease_ms };
    let runs = take_first(tx, request, &taker)?;
    let mut claims = Claims { now_ms: tx.now_ms, runs, next_due_ms: None };
    if claims.runs.is_empty() {
        claims.next_due_ms = next_due(tx)?;
        return Ok(claims);
    }
    nonces.add(&request.nonce);
    let sql = include_str!("../../sql/put_nonces.sql");
    let params = params![tx.db.ns, request.worker.as_str(), tx.now_ms, nonces.as_bytes()];
    tx.db.execute(sql, params)?;
    Ok(claims)
}

fn nonces(tx: &Tx<'_>, worker: &WorkerId) -> Done<Digests> {
    let sql = include_str!("../../sql/nonces.sql");
    let stored = tx.db.one(sql, params![tx.db.ns, worker.as_str()], |row| Ok(row.get(0)?))?;
    Ok(stored.map(Digests::from_bytes).unwrap_or_default())
}

fn next_due(tx: &Tx<'_>) -> Done<Option<i64>> {
    let sql = include_str!("../../sql/next_due.sql");
    Ok(tx.db.one(sql, [tx.db.ns], |row| Ok(row.get(0)?))?.flatten())
}

/// Answers a claim that was answered before with what is left of it.
fn repeat(tx: &mut Tx<'_>, request: &ClaimRequest) -> Done<Claims> {
    let sql = include_str!("../../sql/held_by_claim.sql");
    let params = params![tx.db.ns, request.worker.as_str(), request.nonce];
    let keys: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    let deadline_ms = tx.now_ms.saturating_add(request.lease_ms);
    let mut claims = Claims { now_ms: tx.now_ms, runs: Vec::new(), next_due_ms: None };
    for key in keys {
        let Some(mut run) = aside::run(tx, key)? else { continue };
        let Life::Running { lease } = &run.head.life else { continue };
        let lease = lease.clone();
        run.change(|life| life.renew(&lease.pair, deadline_ms))
            .map_err(|error| run.broken(&error))?;
        tx.save(&mut run)?;
        let read = parts(tx, &run);
        let Some(parts) = aside::sound(tx, key, read)? else { continue };
        claims.runs.push(parts.with(run, lease));
    }
    Ok(claims)
}

/// Takes the first runs of the lanes, within the limits of the request.
fn take_first(tx: &mut Tx<'_>, request: &ClaimRequest, taker: &Taker<'_>) -> Done<Vec<ClaimedRun>> {
    let mut runs: Vec<ClaimedRun> = Vec::new();
    let mut bytes = 0;
    for key in first(tx, request)? {
        if runs.len() >= request.max || (bytes > request.bytes_max && !runs.is_empty()) {
            break;
        }
        let Some(run) = aside::run(tx, key)? else { continue };
        // Who lost its worker may do so again, and must not take its neighbours along.
        let is_suspect = run.head.lost_in_row > 0;
        if is_suspect && !runs.is_empty() {
            continue;
        }
        let Some(claimed) = take(tx, run, taker)? else { continue };
        bytes += bytes_of(&claimed);
        runs.push(claimed);
        if is_suspect {
            break;
        }
    }
    Ok(runs)
}

fn bytes_of(claimed: &ClaimedRun) -> usize {
    let journal: usize = claimed.journal.iter().map(Vec::len).sum();
    claimed.payload.len() + claimed.snapshot.as_ref().map_or(0, Vec::len) + journal
}

/// The keys of the first claimable runs of all lanes, in the order of claiming.
fn first(tx: &Tx<'_>, request: &ClaimRequest) -> Done<Vec<i64>> {
    let paused = tx.db.paused()?;
    let limit = i64::try_from(request.max.saturating_add(SPARE)).unwrap_or(i64::MAX);
    let mut found: Vec<(Reverse<i64>, i64)> = Vec::new();
    for lane in request.lanes.iter().filter(|lane| !paused.contains(&lane.queue)) {
        let Some(lane) = tx.db.lane_number(lane)? else { continue };
        if request.oldest_first {
            found.extend(oldest(tx, lane, limit)?);
        } else {
            let sql = include_str!("../../sql/ready.sql");
            let of_lane =
                tx.db.all(sql, params![lane, limit], |row| Ok((Reverse(row.get(0)?), row.get(1)?)));
            found.extend(of_lane?);
        }
    }
    found.sort_unstable();
    // A lane that was named twice is still one.
    found.dedup();
    Ok(found.into_iter().map(|(_, key)| key).collect())
}

/// The oldest runs of a lane: the first of each priority, as if all had the same.
fn oldest(tx: &Tx<'_>, lane: i64, limit: i64) -> Done<Vec<(Reverse<i64>, i64)>> {
    let mut found = Vec::new();
    for priority in 0..=holdpoint_graph::limits::PRIORITY_MAX {
        let sql = include_str!("../../sql/ready_of_priority.sql");
        let params = params![lane, priority, limit];
        found.extend(tx.db.all(sql, params, |row| Ok((Reverse(0), row.get(0)?)))?);
    }
    Ok(found)
}

/// Who takes runs, and for how long.
pub(crate) struct Taker<'t> {
    pub(crate) worker: &'t WorkerId,
    pub(crate) nonce: &'t str,
    pub(crate) lease_ms: i64,
}

/// Takes a queued run; none when it was set aside instead, because it cannot go on in any way.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    mut run: RunRow,
    taker: &Taker<'_>,
) -> Done<Option<ClaimedRun>> {
    let read = parts(tx, &run);
    let Some(parts) = aside::sound(tx, run.key, read)? else { return Ok(None) };
    let last = run.head.epoch;
    let epoch = u64::try_from(tx.now_us).unwrap_or(0).max(last.saturating_add(1));
    let lease = LeaseTerm {
        pair: Pair { epoch, nonce: taker.nonce.to_owned() },
        worker: taker.worker.clone(),
        deadline_ms: tx.now_ms.saturating_add(taker.lease_ms),
    };
    run.change(|life| life.claim(lease.clone())).map_err(|error| run.broken(&error))?;
    let head = &mut run.head;
    head.epoch = epoch;
    head.claims += 1;
    head.lost_in_row = head.lost_in_row.saturating_add(1);
    head.lost_in_life = head.lost_in_life.saturating_add(1);
    head.started_at_ms.get_or_insert(tx.now_ms);
    head.updated_at_ms = tx.now_ms;
    run.claimed_ms = Some(tx.now_ms);
    tx.save(&mut run)?;
    grant(tx, taker.lease_ms)?;
    Ok(Some(parts.with(run, lease)))
}

/// Remembers the longest lease, by which a stalled store waits before it reaps.
fn grant(tx: &mut Tx<'_>, lease_ms: i64) -> Done<()> {
    if lease_ms > *tx.lease_ms_max {
        let sql = include_str!("../../sql/raise_lease_max.sql");
        tx.db.execute(sql, params![tx.db.ns, lease_ms])?;
        *tx.lease_ms_max = lease_ms;
    }
    Ok(())
}

/// All that is needed of a run to go on, beside its head.
struct Parts {
    payload: Vec<u8>,
    snapshot: Option<Vec<u8>>,
    journal: Vec<Vec<u8>>,
    inbox: Vec<InboxEntry>,
    session_last: Option<RunId>,
    damage: Option<String>,
}

impl Parts {
    fn with(self, run: RunRow, lease: LeaseTerm) -> ClaimedRun {
        ClaimedRun {
            lease: Lease { run: run.head.run.clone(), pair: lease.pair, worker: lease.worker },
            head: run.head,
            payload: self.payload,
            snapshot: self.snapshot,
            journal: self.journal,
            inbox: self.inbox,
            session_last: self.session_last,
            damage: self.damage,
        }
    }
}

/// Reads what belongs to a run. What is damaged is left out and told to the owner, who ends the
/// run; one whose journal has more than its head counts could not even be ended.
fn parts(tx: &Tx<'_>, run: &RunRow) -> Done<Parts> {
    let session_last = match &run.head.session {
        Some(session) => tx.db.session_last(session.as_str())?,
        None => None,
    };
    let mut damage = None;
    // Before its first claim nobody could write a snapshot.
    let has_begun = run.head.started_at_ms.is_some();
    let snapshot = if has_begun { tx.db.snapshot(run) } else { Ok(None) };
    let parts = Parts {
        payload: or_damage(tx.db.payload(run), &mut damage)?,
        snapshot: or_damage(snapshot, &mut damage)?,
        journal: tx.db.events(run, run.head.snapshot_seq, usize::MAX)?,
        inbox: tx.db.inbox(run)?,
        session_last,
        damage,
    };
    if parts.journal.len() as u64 > run.head.seq.saturating_sub(run.head.snapshot_seq) {
        return Err(corrupt(
            row::what(&run.head.run),
            "its journal is longer than its head counts",
        ));
    }
    Ok(parts)
}

fn or_damage<T: Default>(read: Done<T>, damage: &mut Option<String>) -> Done<T> {
    match read {
        Err(Fault::Store(StoreError::Corrupt { why, .. })) => {
            damage.get_or_insert(why);
            Ok(T::default())
        }
        other => other,
    }
}

/// Makes runs whose timer has come claimable.
pub(crate) fn fire(tx: &mut Tx<'_>, max: usize) -> Done<usize> {
    let sql = include_str!("../../sql/due.sql");
    let params = params![tx.db.ns, tx.now_ms, i64::try_from(max).unwrap_or(i64::MAX)];
    let due: Vec<i64> = tx.db.all(sql, params, |row| Ok(row.get(0)?))?;
    let mut fired = 0;
    for key in due {
        let Some(mut run) = aside::run(tx, key)? else { continue };
        run.change(|life| life.fire(tx.now_ms)).map_err(|error| run.broken(&error))?;
        run.head.updated_at_ms = tx.now_ms;
        tx.save(&mut run)?;
        fired += 1;
    }
    Ok(fired)
}
