//! Storing runs, and making a scheduled one due.

use holdpoint_graph::{InterruptId, Life, QueueId, RunId, RunStatus, SessionId};
use holdpoint_storage::{
    CancelWish, ChainHash, EnqueueReply, Enqueued, IfBusy, NewRun, RunHead, seal_payload,
};
use rusqlite::params;

use crate::{
    db::{graph, id},
    digests::Digests,
    fault::{Done, corrupt},
    place::Place,
    row::{self, RunRow},
    tx::Tx,
};

/// Stores runs. Unless `partial`, one refused item means that nothing is stored.
pub(crate) fn enqueue(tx: &mut Tx<'_>, items: &[NewRun], partial: bool) -> Done<EnqueueReply> {
    // One item writes nothing before it is accepted; only several need a way back.
    let mark = (!partial && items.len() > 1).then(|| tx.mark());
    if mark.is_some() {
        tx.db.execute(include_str!("../../sql/savepoint.sql"), [])?;
    }
    let said = items.iter().map(|item| enqueue_one(tx, item)).collect::<Done<Vec<_>>>()?;
    if let Some(mark) = mark {
        if said.iter().any(Enqueued::is_refused) {
            tx.db.execute(include_str!("../../sql/rollback_to_savepoint.sql"), [])?;
            tx.go_back_to(mark);
        }
        tx.db.execute(include_str!("../../sql/release_savepoint.sql"), [])?;
    }
    Ok(EnqueueReply { items: said, durability: tx.db.durability })
}

fn enqueue_one(tx: &mut Tx<'_>, item: &NewRun) -> Done<Enqueued> {
    if let Some(known) = known(tx, item)? {
        return Ok(known);
    }
    let active = match &item.session {
        None => None,
        Some(session) => match session_answer(tx, item, session)? {
            Ok(active) => active,
            Err(refused) => return Ok(refused),
        },
    };
    let depth = depth(tx, &item.queue)?;
    if depth >= item.queue_depth_max {
        return Ok(Enqueued::QueueFull { depth });
    }
    if let Some(active) = active {
        replace_active(tx, active, item.if_busy)?;
    }
    store(tx, item)
}

fn depth(tx: &mut Tx<'_>, queue: &QueueId) -> Done<u64> {
    let depth = tx.depth(queue)?;
    u64::try_from(depth).map_err(|_| corrupt(format!("queue {queue}"), "its depth is negative"))
}

/// The answer to an item whose run or idempotency key is known.
fn known(tx: &Tx<'_>, item: &NewRun) -> Done<Option<Enqueued>> {
    let taken = tx.db.run_by_id(&item.run)?;
    if let Some(run) = &taken
        && run.knows(&item.request)
    {
        let (run, status) = (run.head.run.clone(), run.head.status());
        return Ok(Some(Enqueued::Repeated { run, status }));
    }
    // A key says more than an id: it knows whether the work is the same.
    let keyed = keyed(tx, item)?;
    Ok(keyed.or(taken.map(|_| Enqueued::RunExists)))
}

/// The answer to an item whose idempotency key is known.
fn keyed(tx: &Tx<'_>, item: &NewRun) -> Done<Option<Enqueued>> {
    let Some(key) = &item.key else { return Ok(None) };
    let sql = include_str!("../../sql/idempotent_run.sql");
    let found = tx.db.one(sql, params![tx.db.ns, key.as_str()], |row| {
        let (hash, ended): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        Ok((id::<holdpoint_graph::kind::Run>(row, 0)?, hash, ended))
    });
    let Some((run, payload_hash, ended)) = found? else { return Ok(None) };
    if payload_hash != item.payload_hash {
        return Ok(Some(Enqueued::KeyConflict { run }));
    }
    let status = match ended {
        Some(word) => row::status(&word)?,
        None => match tx.db.run_by_id(&run)? {
            Some(stored) => stored.head.status(),
            None => return Err(corrupt(row::what(&run), "its idempotency key names it in vain")),
        },
    };
    Ok(Some(Enqueued::Existing { run, status }))
}

/// The active run of the item's session, or the refusal of the item.
fn session_answer(
    tx: &Tx<'_>,
    item: &NewRun,
    session: &SessionId,
) -> Done<Result<Option<RunRow>, Enqueued>> {
    let sql = include_str!("../../sql/session_graph.sql");
    let known = tx.db.one(sql, params![tx.db.ns, session.as_str()], |row| graph(row, 0))?;
    match known {
        None => return Ok(Ok(None)),
        Some(graph) if graph != item.graph => return Ok(Err(Enqueued::SessionGraph { graph })),
        Some(_) => {}
    }
    let Some((_, key)) = tx.db.first_turn(session.as_str())? else { return Ok(Ok(None)) };
    let active = tx.db.run_by_key(key)?;
    match item.if_busy {
        IfBusy::Reject => {
            let question = oldest_question(tx, &active)?;
            Ok(Err(Enqueued::SessionBusy { run: active.head.run, question }))
        }
        IfBusy::Enqueue | IfBusy::Interrupt | IfBusy::Rollback => Ok(Ok(Some(active))),
    }
}

fn oldest_question(tx: &Tx<'_>, run: &RunRow) -> Done<Option<InterruptId>> {
    if run.open_count == 0 {
        return Ok(None);
    }
    tx.db.one(include_str!("../../sql/oldest_question.sql"), [run.key], |row| id(row, 0))
}

/// Wishes the active run's end, when the new one is to take its place.
fn replace_active(tx: &mut Tx<'_>, mut active: RunRow, if_busy: IfBusy) -> Done<()> {
    let wish = match if_busy {
        IfBusy::Enqueue | IfBusy::Reject => return Ok(()),
        IfBusy::Interrupt => CancelWish::Interrupted,
        IfBusy::Rollback => CancelWish::RolledBack,
    };
    let is_stronger = match active.head.cancel {
        None => true,
        Some(CancelWish::Interrupted) => wish == CancelWish::RolledBack,
        Some(CancelWish::Asked | CancelWish::RolledBack) => false,
    };
    if is_stronger {
        active.head.cancel = Some(wish);
        active.head.updated_at_ms = tx.now_ms;
        tx.save(&mut active)?;
    }
    Ok(())
}

fn store(tx: &mut Tx<'_>, item: &NewRun) -> Done<Enqueued> {
    if let Some(session) = &item.session {
        let sql = include_str!("../../sql/insert_session.sql");
        tx.db.execute(sql, params![tx.db.ns, session.as_str(), item.graph.as_str()])?;
    }
    let lane = tx.lane(&item.lane())?;
    let mut run = new_row(item, lane, tx.now_ms);
    tx.insert(&mut run)?;
    let sql = include_str!("../../sql/insert_payload.sql");
    let sealed = seal_payload(&tx.db.namespace, &item.run, &item.payload);
    tx.db.execute(sql, params![run.key, sealed])?;
    if let Some(key) = &item.key {
        let sql = include_str!("../../sql/insert_idempotency.sql");
        let (run, hash) = (item.run.as_str(), &item.payload_hash);
        tx.db.execute(sql, params![tx.db.ns, key.as_str(), run, hash, tx.now_ms])?;
    }
    Ok(Enqueued::Created { status: run.head.status(), run: run.head.run })
}

fn new_row(item: &NewRun, lane: i64, now_ms: i64) -> RunRow {
    let until_ms = item.start.at_ms(now_ms);
    let life = if until_ms > now_ms { Life::Scheduled { until_ms } } else { Life::Queued };
    let mut requests = Digests::default();
    requests.add(item.request.as_str());
    RunRow {
        key: 0,
        lane,
        turn: None,
        claimed_ms: None,
        idempotency: item.key.clone(),
        requests,
        inbox_count: 0,
        open_count: 0,
        is_rolled_back: false,
        place: Place {
            lane,
            turn: None,
            status: life.status(),
            is_ready: false,
            due_ms: None,
            close_ms: None,
            epoch: 0,
        },
        head: RunHead {
            run: item.run.clone(),
            graph: item.graph.clone(),
            queue: item.queue.clone(),
            session: item.session.clone(),
            fingerprint: item.fingerprint.clone(),
            life,
            priority: item.priority,
            tags: item.tags.clone(),
            seq: 0,
            hash: ChainHash::default(),
            snapshot_seq: 0,
            tail_bytes: 0,
            epoch: 0,
            claims: 0,
            lost_in_row: 0,
            lost_in_life: 0,
            losses: Vec::new(),
            cancel: None,
            payload_hash: item.payload_hash.clone(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            started_at_ms: None,
            finished_at_ms: None,
            expires_at_ms: item.expires.map(|when| when.at_ms(now_ms)),
            deadline_ms: item.deadline.map(|when| when.at_ms(now_ms)),
        },
    }
}

/// Makes a scheduled run due. False: it is not scheduled. None: there is no such run.
pub(crate) fn start_now(tx: &mut Tx<'_>, run: &RunId) -> Done<Option<bool>> {
    let Some(mut run) = tx.db.run_by_id(run)? else { return Ok(None) };
    if !matches!(run.head.status(), RunStatus::Scheduled) {
        return Ok(Some(false));
    }
    run.change(Life::start_now).map_err(|error| run.broken(&error))?;
    run.head.updated_at_ms = tx.now_ms;
    tx.save(&mut run)?;
    Ok(Some(true))
}
