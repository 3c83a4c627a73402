//! For whoever looks.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_graph::{Fingerprint, GraphId, RunId, RunStatus, SessionId};
use holdpoint_storage::{
    Cursor, Finding, GraphRecord, Inspect, JournalPart, Lane, LaneStats, OpenQuestion, Page,
    Partial, QuestionFilter, RunFilter, RunHead, SessionRecord, Stats, StoreResult, WorkerRecord,
    open_payload, to_word,
};

use super::read::{Index, Range};
use crate::{
    RedisStore,
    codec::{self, Parts},
    error::unreadable,
    script::Script,
};

/// Heads that one call looks at.
const HEADS_MAX: usize = 1_000;
/// Heads that one script reads: they hold the server for half a millisecond.
const HEADS_CHUNK: usize = 100;

#[async_trait]
impl Inspect for RedisStore {
    async fn now_ms(&self) -> StoreResult<i64> {
        let reply = self.conn.command(&redis::cmd("TIME")).await?;
        let mut parts = Parts::of(reply, "the time")?;
        let seconds: i64 = parts.number()?;
        let micros: i64 = parts.number()?;
        Ok(seconds * 1_000 + micros / 1_000)
    }

    async fn head(&self, run: &RunId) -> StoreResult<Option<RunHead>> {
        let Some(mut parts) = self.read(run, "head", None).await? else { return Ok(None) };
        codec::head(run.as_str(), &mut parts).map(Some)
    }

    async fn payload(&self, run: &RunId) -> StoreResult<Option<Vec<u8>>> {
        let Some(mut parts) = self.read(run, "payload", None).await? else { return Ok(None) };
        parts.next()?;
        parts.next()?;
        // One that is missing is as damaged as one that is cut.
        let sealed = parts.bytes_or_none()?.unwrap_or_default();
        open_payload(&self.conn.config().namespace, run, sealed).map(Some)
    }

    async fn journal(
        &self,
        run: &RunId,
        from: u64,
        max: usize,
    ) -> StoreResult<Option<JournalPart>> {
        let range = Range { from, max };
        if max == 0 {
            let head = self.head(run).await?;
            return Ok(head.map(|head| JournalPart {
                head,
                snapshot: None,
                from,
                records: vec![],
            }));
        }
        let Some(mut parts) = self.read(run, "journal", Some(range)).await? else {
            return Ok(None);
        };
        let head = codec::head(run.as_str(), &mut parts)?;
        let from = parts.number()?;
        Ok(Some(JournalPart { head, snapshot: None, from, records: parts.byte_lists()? }))
    }

    async fn checkpoint(&self, run: &RunId) -> StoreResult<Option<JournalPart>> {
        let Some(mut parts) = self.read(run, "checkpoint", None).await? else { return Ok(None) };
        let head = codec::head(run.as_str(), &mut parts)?;
        let from = parts.number()?;
        let records = parts.byte_lists()?;
        Ok(Some(JournalPart { head, from, records, snapshot: parts.bytes_or_none()? }))
    }

    async fn runs(
        &self,
        filter: &RunFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>> {
        let index = Index { name: index_of(filter), is_down: true };
        let accepts = |head: &RunHead| filter.accepts(head);
        self.heads(&index, &accepts, after, limit).await
    }

    async fn questions(
        &self,
        filter: &QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<OpenQuestion>> {
        self.page_of_questions(filter, after, limit).await
    }

    async fn session(&self, session: &SessionId) -> StoreResult<Option<SessionRecord>> {
        let mut call = self.conn.call(Script::Session).await?;
        call.arg(session.as_str()).arg("").number(1);
        let mut parts = Parts::of(self.conn.ask(call).await?, "a session")?;
        if parts.left() == 0 { Ok(None) } else { session_record(parts.parts()?).map(Some) }
    }

    async fn sessions(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<SessionRecord>> {
        let mut call = self.conn.call(Script::Session).await?;
        call.arg("").arg(after.map_or("", |cursor| cursor.id.as_str())).number(limit.max(1) + 1);
        let mut parts = Parts::of(self.conn.ask(call).await?, "a page of sessions")?;
        let mut rows = Vec::new();
        while parts.left() > 0 {
            rows.push(session_record(parts.parts()?)?);
        }
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more);
        let next = last.map(|row| Cursor { at_ms: 0, id: row.session.to_string() });
        Ok(Page { rows, next })
    }

    async fn stats(&self) -> StoreResult<Stats> {
        let call = self.conn.call(Script::Stats).await?;
        stats(Parts::of(self.conn.ask(call).await?, "the counts")?)
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerRecord>> {
        let call = self.conn.call(Script::Workers).await?;
        let mut parts = Parts::of(self.conn.ask(call).await?, "the workers")?;
        let mut workers = Vec::new();
        while parts.left() > 0 {
            let mut row = parts.parts()?;
            let beat_at_ms = row.number()?;
            let record: WorkerRecord = json(&row.bytes()?, "a worker")?;
            let mut runs = codec::runs(row.texts()?)?;
            runs.sort();
            workers.push(WorkerRecord { beat_at_ms, runs, ..record });
        }
        workers.sort_by(|a, b| a.worker.cmp(&b.worker));
        Ok(workers)
    }

    async fn graphs(&self) -> StoreResult<Vec<GraphRecord>> {
        let call = self.conn.call(Script::Graphs).await?;
        let mut parts = Parts::of(self.conn.ask(call).await?, "the graphs")?;
        let mut graphs = Vec::new();
        while parts.left() > 0 {
            let text = parts.text()?;
            let (since, record) = text.split_once('|').ok_or_else(|| unreadable("a graph"))?;
            let published_at_ms = since.parse().map_err(|_| unreadable("a graph"))?;
            let record: GraphRecord = json(record.as_bytes(), "a graph")?;
            graphs.push(GraphRecord { published_at_ms, ..record });
        }
        graphs.sort_by(|a, b| (&a.graph, &a.fingerprint).cmp(&(&b.graph, &b.fingerprint)));
        Ok(graphs)
    }

    async fn partials(&self, run: &RunId, after: u64) -> StoreResult<Vec<Partial>> {
        let mut call = self.conn.call(Script::Partials).await?;
        call.arg(run.as_str()).number(after);
        let mut parts = Parts::of(self.conn.ask(call).await?, "partial results")?;
        let mut partials = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            partials.push(partial(&parts.bytes()?).ok_or_else(|| unreadable("a partial result"))?);
        }
        Ok(partials)
    }

    async fn changed(&self, run: &RunId, patience: Duration) {
        self.follow.changed(run, patience).await;
    }

    async fn check(&self) -> StoreResult<Vec<Finding>> {
        self.findings().await
    }
}

impl RedisStore {
    /// Heads of an index that are accepted. Looks at a bounded number, so a page may be short.
    pub(super) async fn heads(
        &self,
        index: &Index,
        accepts: &(dyn Fn(&RunHead) -> bool + Send + Sync),
        after: Option<&Cursor>,
        limit: usize,
    ) -> StoreResult<Page<RunHead>> {
        let mut rows = Vec::new();
        let mut place = after.cloned();
        let mut looked = 0;
        while rows.len() < limit && looked < HEADS_MAX {
            let found = self.page(index, place.as_ref(), HEADS_CHUNK).await?;
            let is_last = found.len() < HEADS_CHUNK;
            let count = found.len();
            for (n, row) in found.into_iter().enumerate() {
                looked += 1;
                place = Some(Cursor { at_ms: row.at_ms, id: row.member });
                rows.extend(row.head.filter(|head| accepts(head)));
                if rows.len() == limit {
                    let is_end = is_last && n + 1 == count;
                    return Ok(Page { rows, next: place.filter(|_| !is_end) });
                }
            }
            if is_last {
                return Ok(Page { rows, next: None });
            }
        }
        Ok(Page { rows, next: place })
    }
}

/// The smallest index that has all runs of a filter.
fn index_of(filter: &RunFilter) -> String {
    match (&filter.session, filter.tags.first()) {
        (Some(session), _) => format!("x:{session}"),
        (None, Some(tag)) => format!("t:{}", to_word(tag)),
        (None, None) => "ix".to_owned(),
    }
}

fn session_record(mut parts: Parts) -> StoreResult<SessionRecord> {
    let session = codec::id(&parts.bytes()?, "a session")?;
    let graph = codec::id(&parts.bytes()?, "a session's graph")?;
    let last = match parts.bytes_or_none()? {
        None => None,
        Some(last) => Some(codec::id(&last, "a session's last run")?),
    };
    let runs = parts.number()?;
    let mut order = codec::runs(parts.texts()?)?.into_iter();
    Ok(SessionRecord { session, graph, active: order.next(), waiting: order.collect(), last, runs })
}

fn stats(mut parts: Parts) -> StoreResult<Stats> {
    let now_ms = parts.number()?;
    let waiting: u64 = parts.number()?;
    let scheduled: u64 = parts.number()?;
    let mut counts = vec![
        (RunStatus::Scheduled, scheduled),
        (RunStatus::Queued, waiting.saturating_sub(scheduled)),
    ];
    for status in [
        RunStatus::Running,
        RunStatus::Parked,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ] {
        counts.push((status, parts.number()?));
    }
    let open_questions = parts.number()?;
    let mut paused = Vec::new();
    for queue in parts.texts()? {
        paused.push(codec::id(queue.as_bytes(), "a paused queue")?);
    }
    paused.sort();
    let mut lanes = Vec::new();
    while parts.left() > 0 {
        lanes.push(lane_stats(parts.parts()?)?);
    }
    lanes.sort_by(|a, b| a.lane.cmp(&b.lane));
    Ok(Stats { now_ms, counts, lanes, open_questions, paused })
}

fn lane_stats(mut parts: Parts) -> StoreResult<LaneStats> {
    let text = parts.text()?;
    let [queue, graph, pin] = <[&str; 3]>::try_from(text.split('|').collect::<Vec<_>>())
        .map_err(|_| unreadable("a lane"))?;
    let lane = Lane {
        queue: codec::id(queue.as_bytes(), "a lane")?,
        graph: codec::id::<_>(graph.as_bytes(), "a lane").map(|graph: GraphId| graph)?,
        fingerprint: (!pin.is_empty()).then(|| Fingerprint::from_text(pin)),
    };
    let queued = parts.number()?;
    let oldest = parts.text()?;
    Ok(LaneStats { lane, queued, oldest_created_ms: oldest.parse().ok() })
}

fn partial(text: &[u8]) -> Option<Partial> {
    let mut fields = text.splitn(3, |byte| *byte == b'|');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (n, after) = (number()?, number()?);
    Some(Partial { n, after, body: fields.next()?.to_vec() })
}

fn json<T: serde::de::DeserializeOwned>(text: &[u8], what: &str) -> StoreResult<T> {
    serde_json::from_slice(text).map_err(|_| unreadable(what))
}
