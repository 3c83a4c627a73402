//! One row of `runs`: the head of a run and what only this crate needs to know of it.

use holdpoint_graph::{
    Id, KeyId, Kind, LeaseTerm, Life, LifeError, Pair, ReasonCode, RequestId, RunId, RunStatus,
};
use holdpoint_storage::{CancelWish, ChainHash, RunHead};
use rusqlite::{Row, types::FromSql};

use crate::{
    db::Lanes,
    digests::Digests,
    fault::{Done, Fault, corrupt},
    place::Place,
};

/// A run as it was read, to be changed and written back with `Tx::save`.
#[derive(Debug)]
pub(crate) struct RunRow {
    /// Its key, which is its place in the order of enqueueing; 0 before it is stored.
    pub(crate) key: i64,
    pub(crate) head: RunHead,
    /// The number of its lane.
    pub(crate) lane: i64,
    /// Its place in its session's order, while it has one.
    pub(crate) turn: Option<i64>,
    /// When its newest owner took it.
    pub(crate) claimed_ms: Option<i64>,
    pub(crate) idempotency: Option<KeyId>,
    pub(crate) requests: Digests,
    /// How many answers wait. A cache of its rows in `inbox`.
    pub(crate) inbox_count: i64,
    /// How many questions are open. A cache of its rows in `interrupts`.
    pub(crate) open_count: i64,
    /// Whether its session is to forget it. Not stored: it says how the run is saved.
    pub(crate) is_rolled_back: bool,
    /// Where it stands in the indexes, as stored.
    pub(crate) place: Place,
}

impl RunRow {
    /// The end of the lease, while there is one.
    pub(crate) const fn lease_end_ms(&self) -> Option<i64> {
        match &self.head.life {
            Life::Running { lease } => Some(lease.deadline_ms),
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Parked { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => None,
        }
    }

    /// Makes a move of the run's life; a refused one leaves it as it was.
    pub(crate) fn change<F>(&mut self, step: F) -> Result<(), LifeError>
    where
        F: FnOnce(Life) -> Result<Life, LifeError>,
    {
        self.head.life = step(self.head.life.clone())?;
        Ok(())
    }

    /// The error of a move that the caller's checks have ruled out.
    pub(crate) fn broken(&self, error: &LifeError) -> Fault {
        corrupt(what(&self.head.run), error)
    }

    /// The end of a claim in order: it does not count as lost.
    pub(crate) const fn claim_ended(&mut self) {
        self.head.lost_in_life = self.head.lost_in_life.saturating_sub(1);
        self.head.lost_in_row = 0;
    }

    /// Whether the request was one of the run's last.
    pub(crate) fn knows(&self, request: &RequestId) -> bool {
        self.requests.has(request.as_str())
    }
}

/// How messages name a run.
pub(crate) fn what(run: &RunId) -> String {
    format!("run {run}")
}

/// The columns of a row, one after another.
struct Columns<'r, 's> {
    row: &'r Row<'s>,
    at: usize,
}

impl<'r> Columns<'r, '_> {
    fn value<T: FromSql>(&mut self) -> Done<T> {
        let value = self.row.get(self.at)?;
        self.at += 1;
        Ok(value)
    }

    fn text(&mut self) -> Done<Option<&'r str>> {
        let at = self.at;
        self.at += 1;
        let text = self.row.get_ref(at)?.as_str_or_null();
        Ok(text.map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                at,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })?)
    }

    fn needed(&mut self) -> Done<&'r str> {
        let at = self.at;
        self.text()?.ok_or_else(|| corrupt("a run", format!("its column {at} is empty")))
    }

    fn id<K: Kind>(&mut self) -> Done<Option<Id<K>>> {
        Ok(self.text()?.map(Id::new).transpose()?)
    }

    fn count(&mut self) -> Done<u64> {
        let (at, number) = (self.at, self.value::<i64>()?);
        u64::try_from(number)
            .map_err(|_| corrupt("a run", format!("its column {at} is {number}, not a count")))
    }
}

/// Decodes a row of `SELECT * FROM runs`.
pub(crate) fn decode(row: &Row<'_>, lanes: &Lanes<'_>) -> Done<RunRow> {
    let named = || match row.get::<_, String>(2) {
        Ok(id) => format!("run {id}"),
        Err(_) => "a run whose id cannot be read".to_owned(),
    };
    decode_columns(row, lanes).map_err(|fault| rename(fault.in_what(named), named))
}

/// Faults of single columns do not know the run; this puts its name in.
fn rename(fault: Fault, named: impl FnOnce() -> String) -> Fault {
    match fault {
        Fault::Store(holdpoint_storage::StoreError::Corrupt { what, why }) if what == "a run" => {
            corrupt(named(), why)
        }
        other @ (Fault::Store(_) | Fault::Sql(_)) => other,
    }
}

fn decode_columns(row: &Row<'_>, lanes: &Lanes<'_>) -> Done<RunRow> {
    let mut columns = Columns { row, at: 0 };
    let key = columns.value()?;
    columns.at += 1;
    let run = columns.id()?.ok_or_else(|| corrupt("a run", "it has no id"))?;
    let lane = columns.value()?;
    let in_lane = lanes.get(lane)?;
    let session = columns.id()?;
    let turn = columns.value()?;
    let status = status(columns.needed()?)?;
    let is_ready = columns.value()?;
    let priority = columns.value()?;
    let due_ms = columns.value()?;
    let close_ms = columns.value()?;
    let lease = Lease { worker: columns.id()?, nonce: columns.text()?, end_ms: columns.value()? };
    let claimed_ms = columns.value()?;
    let reason = columns.text()?.map(reason).transpose()?;
    let seq = columns.count()?;
    let hash = ChainHash(columns.needed()?.to_owned());
    let snapshot_seq = columns.count()?;
    let tail_bytes = columns.count()?;
    let epoch = columns.count()?;
    let life = life(Stored { status, due_ms, reason, epoch, lease })?;
    let mut read = RunRow {
        key,
        lane,
        turn,
        claimed_ms,
        place: Place { lane, turn, status, is_ready, due_ms, close_ms, epoch },
        head: RunHead {
            run,
            graph: in_lane.graph,
            queue: in_lane.queue,
            session,
            fingerprint: in_lane.fingerprint,
            life,
            priority,
            tags: Vec::new(),
            seq,
            hash,
            snapshot_seq,
            tail_bytes,
            epoch,
            claims: columns.count()?,
            lost_in_row: columns.value()?,
            lost_in_life: columns.value()?,
            losses: json(columns.text()?)?,
            cancel: columns.text()?.map(wish).transpose()?,
            payload_hash: columns.needed()?.to_owned(),
            created_at_ms: columns.value()?,
            updated_at_ms: columns.value()?,
            started_at_ms: columns.value()?,
            finished_at_ms: columns.value()?,
            expires_at_ms: columns.value()?,
            deadline_ms: columns.value()?,
        },
        requests: Digests::default(),
        idempotency: None,
        inbox_count: 0,
        open_count: 0,
        is_rolled_back: false,
    };
    read.head.tags = json(columns.text()?)?;
    read.requests = Digests::from_bytes(columns.value()?);
    read.idempotency = columns.id()?;
    read.inbox_count = columns.value()?;
    read.open_count = columns.value()?;
    Ok(read)
}

/// What the columns say of a run's life.
struct Stored<'r> {
    status: RunStatus,
    due_ms: Option<i64>,
    reason: Option<ReasonCode>,
    epoch: u64,
    lease: Lease<'r>,
}

struct Lease<'r> {
    worker: Option<holdpoint_graph::WorkerId>,
    nonce: Option<&'r str>,
    end_ms: Option<i64>,
}

fn life(stored: Stored<'_>) -> Done<Life> {
    let status = stored.status;
    let missing =
        |part: &str| corrupt("a run", format!("it is {} without {part}", status.as_str()));
    Ok(match status {
        RunStatus::Scheduled => {
            Life::Scheduled { until_ms: stored.due_ms.ok_or_else(|| missing("a time"))? }
        }
        RunStatus::Queued => Life::Queued,
        RunStatus::Running => {
            let Lease { worker: Some(worker), nonce: Some(nonce), end_ms: Some(deadline_ms) } =
                stored.lease
            else {
                return Err(missing("a whole lease"));
            };
            let pair = Pair { epoch: stored.epoch, nonce: nonce.to_owned() };
            Life::Running { lease: LeaseTerm { pair, worker, deadline_ms } }
        }
        RunStatus::Parked => Life::Parked { wake_at_ms: stored.due_ms },
        RunStatus::Completed => Life::Completed,
        RunStatus::Failed => {
            Life::Failed { reason: stored.reason.ok_or_else(|| missing("a reason"))? }
        }
        RunStatus::Cancelled => Life::Cancelled,
    })
}

/// The state of a stored word.
pub(crate) fn status(word: &str) -> Done<RunStatus> {
    RunStatus::from_word(word).ok_or_else(|| corrupt("a run", format!("its state is {word:?}")))
}

fn reason(word: &str) -> Done<ReasonCode> {
    ReasonCode::from_word(word).ok_or_else(|| corrupt("a run", format!("its reason is {word:?}")))
}

fn wish(word: &str) -> Done<CancelWish> {
    CancelWish::from_word(word)
        .ok_or_else(|| corrupt("a run", format!("its cancel wish is {word:?}")))
}

/// A list that is stored as JSON, or as nothing when it is empty.
fn json<T: serde::de::DeserializeOwned>(text: Option<&str>) -> Done<Vec<T>> {
    match text {
        None => Ok(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| corrupt("a run", error)),
    }
}

/// The stored form of a list.
pub(crate) fn to_json<T: serde::Serialize>(list: &[T]) -> Option<String> {
    let text = || serde_json::to_string(list).expect("a list of plain data always has a text");
    (!list.is_empty()).then(text)
}
