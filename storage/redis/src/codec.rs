//! From replies of scripts to values: the only place that knows how a head is stored.

use holdpoint_graph::{
    Fingerprint, GraphId, Id, InterruptId, Kind, LeaseTerm, Life, Namespace, Pair, QueueId,
    ReasonCode, RunId, RunStatus, SessionId, WorkerId,
};
use holdpoint_storage::{
    CancelWish, ChainHash, ClaimedRun, InboxEntry, Lease, ListedQuestion, Loss, OpenQuestion,
    RunHead, StoreError, StoreResult, from_word, open_payload, question_lists,
};
use redis::Value;

use crate::error::unreadable;

/// A reply that is taken apart from the front.
#[derive(Debug)]
pub(crate) struct Parts {
    values: std::vec::IntoIter<Value>,
    what: &'static str,
}

impl Parts {
    pub(crate) fn of(value: Value, what: &'static str) -> StoreResult<Self> {
        let Value::Array(values) = value else { return Err(unreadable(what)) };
        Ok(Self { values: values.into_iter(), what })
    }

    pub(crate) fn next(&mut self) -> StoreResult<Value> {
        self.values.next().ok_or_else(|| unreadable(self.what))
    }

    pub(crate) fn bytes(&mut self) -> StoreResult<Vec<u8>> {
        self.bytes_or_none()?.ok_or_else(|| unreadable(self.what))
    }

    /// Bytes, or nothing when the script answered that there are none.
    pub(crate) fn bytes_or_none(&mut self) -> StoreResult<Option<Vec<u8>>> {
        bytes(self.next()?, self.what)
    }

    pub(crate) fn text(&mut self) -> StoreResult<String> {
        String::from_utf8(self.bytes()?).map_err(|_| unreadable(self.what))
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> StoreResult<T> {
        self.text()?.parse().map_err(|_| unreadable(self.what))
    }

    pub(crate) fn parts(&mut self) -> StoreResult<Self> {
        Self::of(self.next()?, self.what)
    }

    pub(crate) fn texts(&mut self) -> StoreResult<Vec<String>> {
        let mut parts = self.parts()?;
        let mut texts = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            texts.push(parts.text()?);
        }
        Ok(texts)
    }

    /// Pairs of a flat list.
    pub(crate) fn pairs(&mut self) -> StoreResult<Vec<(String, Vec<u8>)>> {
        let mut parts = self.parts()?;
        let mut pairs = Vec::with_capacity(parts.left() / 2);
        while parts.left() > 0 {
            pairs.push((parts.text()?, parts.bytes()?));
        }
        Ok(pairs)
    }

    pub(crate) fn byte_lists(&mut self) -> StoreResult<Vec<Vec<u8>>> {
        let mut parts = self.parts()?;
        let mut lists = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            lists.push(parts.bytes()?);
        }
        Ok(lists)
    }

    pub(crate) fn left(&self) -> usize {
        self.values.len()
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the client library's enum grows")]
fn bytes(value: Value, what: &str) -> StoreResult<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.into_bytes())),
        Value::Int(number) => Ok(Some(number.to_string().into_bytes())),
        Value::Nil => Ok(None),
        _ => Err(unreadable(what)),
    }
}

/// A reply that is one text.
pub(crate) fn text(value: Value, what: &'static str) -> StoreResult<String> {
    let bytes = bytes(value, what)?.ok_or_else(|| unreadable(what))?;
    String::from_utf8(bytes).map_err(|_| unreadable(what))
}

/// A reply that is one number.
pub(crate) fn number(value: &Value, what: &str) -> StoreResult<i64> {
    let Value::Int(number) = value else { return Err(unreadable(what)) };
    Ok(*number)
}

/// The state of its letter.
pub(crate) fn status(letter: &str) -> StoreResult<RunStatus> {
    match letter {
        "s" => Ok(RunStatus::Scheduled),
        "q" => Ok(RunStatus::Queued),
        "r" => Ok(RunStatus::Running),
        "p" => Ok(RunStatus::Parked),
        "c" => Ok(RunStatus::Completed),
        "f" => Ok(RunStatus::Failed),
        "x" => Ok(RunStatus::Cancelled),
        _ => Err(unreadable("a state")),
    }
}

/// An inbox: each record stands behind the request that brought it.
pub(crate) fn inbox(pairs: Vec<(String, Vec<u8>)>) -> Vec<InboxEntry> {
    let entry = |(key, mut value): (String, Vec<u8>)| {
        let start = value.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        InboxEntry { key, record: value.split_off(start) }
    };
    let mut entries: Vec<InboxEntry> = pairs.into_iter().map(entry).collect();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    entries
}

/// The fields of a head as they are stored, and behind them the changes that a script made after
/// it had read them. They are few, so they are looked for one by one.
pub(crate) struct Fields {
    run: String,
    fields: Vec<(String, Vec<u8>)>,
}

impl Fields {
    pub(crate) fn new(run: &str, pairs: Vec<(String, Vec<u8>)>) -> Self {
        Self { run: run.to_owned(), fields: pairs }
    }

    /// Applies changes that a script made after it had read the fields.
    fn apply(&mut self, changes: Vec<(String, Vec<u8>)>) {
        self.fields.extend(changes);
    }

    fn bad(&self, what: &str) -> StoreError {
        let why = format!("its {what} cannot be read");
        StoreError::Corrupt { what: format!("run {}", self.run), why }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().rev().find(|(field, _)| field == name)?;
        std::str::from_utf8(value).ok()
    }

    /// The parts of a field, which must be as many.
    fn split<const N: usize>(&self, name: &str, by: char) -> StoreResult<[&str; N]> {
        let parts: Vec<&str> = self.text(name).unwrap_or_default().split(by).collect();
        parts.try_into().map_err(|_| self.bad(name))
    }

    fn parse<T: std::str::FromStr>(&self, text: &str, what: &str) -> StoreResult<T> {
        text.parse().map_err(|_| self.bad(what))
    }

    fn optional<T: std::str::FromStr>(&self, text: &str, what: &str) -> StoreResult<Option<T>> {
        if text.is_empty() { Ok(None) } else { self.parse(text, what).map(Some) }
    }

    /// Its place in the order of enqueuing.
    pub(crate) fn order(&self) -> u64 {
        self.split::<5>("b", '|').ok().and_then(|[_, order, ..]| order.parse().ok()).unwrap_or(0)
    }

    fn life(&self, status: RunStatus, epoch: u64, deadline_ms: i64) -> StoreResult<Life> {
        let due = || self.optional(self.text("d").unwrap_or_default(), "time");
        Ok(match status {
            RunStatus::Scheduled => {
                Life::Scheduled { until_ms: due()?.ok_or_else(|| self.bad("time"))? }
            }
            RunStatus::Queued => Life::Queued,
            RunStatus::Running => {
                let nonce = self.text("o").unwrap_or_default().to_owned();
                let [worker, _since] = self.split("w", '|')?;
                let worker: WorkerId = self.parse(worker, "worker")?;
                let pair = Pair { epoch, nonce };
                Life::Running { lease: LeaseTerm { pair, worker, deadline_ms } }
            }
            RunStatus::Parked => Life::Parked { wake_at_ms: due()? },
            RunStatus::Completed => Life::Completed,
            RunStatus::Failed => {
                let reason = self.text("r").and_then(ReasonCode::from_word);
                Life::Failed { reason: reason.ok_or_else(|| self.bad("reason"))? }
            }
            RunStatus::Cancelled => Life::Cancelled,
        })
    }

    fn losses(&self) -> StoreResult<Vec<Loss>> {
        let Some(text) = self.text("y") else { return Ok(Vec::new()) };
        serde_json::from_str(&format!("[{text}]")).map_err(|_| self.bad("losses"))
    }

    /// The head; `deadline_ms` is the end of the lease of a running run.
    pub(crate) fn head(&self, deadline_ms: i64) -> StoreResult<RunHead> {
        let [graph, queue, session] = self.split("a", '|')?;
        let [priority, _order, created, expires, deadline] = self.split("b", '|')?;
        let [updated, snapshot, tail] = self.split("v", '|')?;
        let [claims, row, life] = self.split("c", '|')?;
        let [seq, hash] = self.split("n", ':')?;
        let epoch = self.parse(self.text("e").unwrap_or_default(), "epoch")?;
        let status = status(self.text("s").unwrap_or_default())?;
        let pinned = self.text("l").unwrap_or_default();
        Ok(RunHead {
            run: self.parse::<RunId>(&self.run, "id")?,
            graph: self.parse::<GraphId>(graph, "graph")?,
            queue: self.parse::<QueueId>(queue, "queue")?,
            session: self.optional::<SessionId>(session, "session")?,
            fingerprint: (!pinned.is_empty()).then(|| Fingerprint::from_text(pinned)),
            life: self.life(status, epoch, deadline_ms)?,
            priority: self.parse(priority, "priority")?,
            tags: self.text("g").map_or_else(Vec::new, tags),
            seq: self.parse(seq, "length")?,
            hash: ChainHash(hash.to_owned()),
            snapshot_seq: self.parse(snapshot, "snapshot's number")?,
            tail_bytes: self.parse(tail, "count of bytes")?,
            epoch,
            claims: self.parse(claims, "count of claims")?,
            lost_in_row: self.parse(row, "count of lost workers")?,
            lost_in_life: self.parse(life, "count of lost workers")?,
            losses: self.losses()?,
            cancel: match self.text("x") {
                None => None,
                Some("a") => Some(CancelWish::Asked),
                Some("i") => Some(CancelWish::Interrupted),
                Some("b") => Some(CancelWish::RolledBack),
                Some(_) => return Err(self.bad("wish to cancel")),
            },
            payload_hash: self.text("h").unwrap_or_default().to_owned(),
            created_at_ms: self.parse(created, "creation")?,
            updated_at_ms: self.parse(updated, "time of change")?,
            started_at_ms: self.optional(self.text("t").unwrap_or_default(), "start")?,
            finished_at_ms: self.optional(self.text("f").unwrap_or_default(), "end")?,
            expires_at_ms: self.optional(expires, "expiry")?,
            deadline_ms: self.optional(deadline, "deadline")?,
        })
    }
}

/// Tags are stored one a line.
fn tags(text: &str) -> Vec<String> {
    text.lines().map(from_word).collect()
}

/// A head as `read` and `page` answer it: the fields, and the end of the lease.
pub(crate) fn head(run: &str, parts: &mut Parts) -> StoreResult<RunHead> {
    let fields = Fields::new(run, parts.pairs()?);
    let deadline = parts.text()?;
    fields.head(if deadline.is_empty() { 0 } else { deadline.parse().unwrap_or_default() })
}

/// A claimed run. `deadline_ms` is the end of its new lease.
pub(crate) fn claimed(
    namespace: &Namespace,
    run: &str,
    mut parts: Parts,
    deadline_ms: i64,
) -> StoreResult<ClaimedRun> {
    let mut fields = Fields::new(run, parts.pairs()?);
    let changes = parts.next()?;
    if changes != Value::Nil {
        fields.apply(flat(changes)?);
    }
    let head = fields.head(deadline_ms)?;
    let Life::Running { lease } = &head.life else { return Err(unreadable("a claim")) };
    let lease =
        Lease { run: head.run.clone(), pair: lease.pair.clone(), worker: lease.worker.clone() };
    let (payload, damage) = match open_payload(namespace, &head.run, parts.bytes()?) {
        Ok(payload) => (payload, None),
        Err(StoreError::Corrupt { why, .. }) => (Vec::new(), Some(why)),
        Err(error) => return Err(error),
    };
    Ok(ClaimedRun {
        lease,
        payload,
        damage,
        snapshot: parts.bytes_or_none()?,
        journal: parts.byte_lists()?,
        inbox: inbox(parts.pairs()?),
        session_last: match parts.bytes_or_none()? {
            None => None,
            Some(last) => Some(id(&last, "a session's last run")?),
        },
        head,
    })
}

fn flat(value: Value) -> StoreResult<Vec<(String, Vec<u8>)>> {
    let mut outer = Parts { values: vec![value].into_iter(), what: "a claim" };
    outer.pairs()
}

/// An id that the store gives.
pub(crate) fn id<K: Kind>(text: &[u8], what: &str) -> StoreResult<Id<K>> {
    let text = std::str::from_utf8(text).map_err(|_| unreadable(what))?;
    Id::new(text).map_err(|_| unreadable(what))
}

/// The ids of a list.
pub(crate) fn runs(texts: Vec<String>) -> StoreResult<Vec<RunId>> {
    texts.into_iter().map(|text| id(text.as_bytes(), "a run's id")).collect()
}

/// A question as it is stored: when it opened, the hash of its arguments, its gate, its votes, its
/// deadline and whom it asks, each on a line, then what it asks.
pub(crate) fn question(
    head: RunHead,
    interrupt: InterruptId,
    value: &[u8],
) -> StoreResult<ListedQuestion> {
    let bad = || unreadable("a question");
    let mut lines = value.splitn(7, |byte| *byte == b'\n');
    let mut line = || lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let opened_at_ms = line().and_then(|at| at.parse().ok()).ok_or_else(bad)?;
    let (_hash, _gate, _votes) = (line(), line(), line());
    let deadline = line().ok_or_else(bad)?;
    let deadline_ms = match deadline {
        "" => None,
        at => Some(at.parse().map_err(|_| bad())?),
    };
    let asked: Vec<String> =
        line().ok_or_else(bad)?.split_terminator(' ').map(str::to_owned).collect();
    let body = lines.next().ok_or_else(bad)?.to_vec();
    let lists = question_lists(&head.graph, &head.tags, &asked);
    let question = OpenQuestion { head, interrupt, opened_at_ms, body };
    Ok(ListedQuestion { question, deadline_ms, lists })
}

/// The head in a row of a page; none when the run is damaged or gone.
pub(crate) fn row_head(
    run: &str,
    fields: Value,
    parts: &mut Parts,
) -> StoreResult<Option<RunHead>> {
    let fields = Fields::new(run, flat(fields)?);
    let deadline = parts.text()?;
    Ok(fields.head(deadline.parse().unwrap_or_default()).ok())
}
