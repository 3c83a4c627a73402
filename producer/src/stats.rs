//! What there is beside runs: counts, lanes, queues, workers, graphs.

use std::collections::BTreeMap;

use holdpoint_graph::{Fingerprint, GraphId, QueueId, RunId, RunStatus, WorkerId};
use holdpoint_storage::{GraphRecord, Lane, LaneStats, WorkerRecord};
use serde::Serialize;
use serde_json::Value;

use crate::{Producer, ProducerError, Timestamp};

/// Counts over the namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatsView {
    /// Runs per state, all seven.
    pub counts: BTreeMap<&'static str, u64>,
    /// The lanes in which runs wait.
    pub lanes: Vec<LaneView>,
    /// Parked runs.
    pub parked: u64,
    /// Live workers.
    pub workers: usize,
    /// Open questions.
    pub open_questions: u64,
}

/// One lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneView {
    /// Its queue.
    pub queue: QueueId,
    /// Its graph.
    pub graph: GraphId,
    /// The structure its runs are pinned to.
    pub fingerprint: Option<Fingerprint>,
    /// How many runs wait in it.
    pub queued: u64,
    /// The age of the oldest, in whole seconds.
    pub oldest_age_s: Option<i64>,
    /// Whether a live worker serves it.
    pub served: bool,
}

/// One queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueView {
    /// The queue.
    pub queue: QueueId,
    /// Whether it is paused.
    pub paused: bool,
    /// How many runs wait in it.
    pub queued: u64,
    /// The age of the oldest, in whole seconds.
    pub oldest_age_s: Option<i64>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerView {
    /// Its id.
    pub worker: WorkerId,
    /// Its host.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub since: Timestamp,
    /// When it last gave a sign.
    pub beat_at: Timestamp,
    /// Whether it lives.
    pub state: WorkerState,
    /// What it serves.
    pub graphs: Vec<ServedView>,
    /// From which queues.
    pub queues: Vec<QueueId>,
    /// The runs it holds.
    pub runs: Vec<RunId>,
    /// How many at once.
    pub concurrency: usize,
    /// Why it takes no runs although it lives, as it said itself.
    pub trouble: Option<String>,
}

/// Whether a worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It takes runs.
    Live,
    /// It ends what it has and takes no more.
    Draining,
    /// It gave no sign for too long.
    Lost,
}

/// A graph that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServedView {
    /// The graph.
    pub graph: GraphId,
    /// Its structure.
    pub fingerprint: Fingerprint,
}

/// A published graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphView {
    /// The graph.
    pub graph: GraphId,
    /// Its structure.
    pub fingerprint: Fingerprint,
    /// How many nodes it has.
    pub nodes: usize,
    /// Whether a live worker serves it.
    pub served: bool,
}

/// Whether a worker lives, at the store's time.
pub(crate) fn state_of(worker: &WorkerRecord, now_ms: i64) -> WorkerState {
    match now_ms.saturating_sub(worker.beat_at_ms) > worker.lost_after_ms {
        true => WorkerState::Lost,
        false if worker.is_draining => WorkerState::Draining,
        false => WorkerState::Live,
    }
}

/// Whether a worker takes runs of a lane.
pub(crate) fn serves(worker: &WorkerRecord, lane: &Lane) -> bool {
    let graph = |(graph, fingerprint): &(GraphId, Fingerprint)| {
        *graph == lane.graph && lane.fingerprint.as_ref().is_none_or(|wanted| wanted == fingerprint)
    };
    worker.queues.contains(&lane.queue) && worker.graphs.iter().any(graph)
}

fn age_s(lane: &LaneStats, now_ms: i64) -> Option<i64> {
    lane.oldest_created_ms.map(|created_ms| now_ms.saturating_sub(created_ms).max(0) / 1_000)
}

impl Producer {
    /// The workers that live, with the store's time.
    pub(crate) async fn live_workers(&self) -> Result<Vec<WorkerRecord>, ProducerError> {
        let now_ms = self.now_ms().await?;
        let workers = self.insist(None, || self.store().workers()).await?;
        Ok(workers
            .into_iter()
            .filter(|worker| state_of(worker, now_ms) == WorkerState::Live)
            .collect())
    }

    /// Counts over the namespace.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn stats(&self) -> Result<StatsView, ProducerError> {
        let stats = self.insist(None, || self.store().stats()).await?;
        let workers = self.live_workers().await?;
        let lane = |lane: &LaneStats| LaneView {
            queue: lane.lane.queue.clone(),
            graph: lane.lane.graph.clone(),
            fingerprint: lane.lane.fingerprint.clone(),
            queued: lane.queued,
            oldest_age_s: age_s(lane, stats.now_ms),
            served: workers.iter().any(|worker| serves(worker, &lane.lane)),
        };
        let parked = stats.counts.iter().find(|(status, _)| *status == RunStatus::Parked);
        Ok(StatsView {
            counts: stats.counts.iter().map(|(status, n)| (status.as_str(), *n)).collect(),
            lanes: stats.lanes.iter().map(lane).collect(),
            parked: parked.map_or(0, |(_, count)| *count),
            workers: workers.len(),
            open_questions: stats.open_questions,
        })
    }

    /// The queues that hold runs or are paused.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn queues(&self) -> Result<Vec<QueueView>, ProducerError> {
        let stats = self.insist(None, || self.store().stats()).await?;
        let mut queues: BTreeMap<QueueId, QueueView> = BTreeMap::new();
        let new = |queue: &QueueId| QueueView {
            queue: queue.clone(),
            paused: stats.paused.contains(queue),
            queued: 0,
            oldest_age_s: None,
        };
        for lane in &stats.lanes {
            let queue = &lane.lane.queue;
            let view = queues.entry(queue.clone()).or_insert_with(|| new(queue));
            view.queued += lane.queued;
            view.oldest_age_s = view.oldest_age_s.max(age_s(lane, stats.now_ms));
        }
        for queue in &stats.paused {
            queues.entry(queue.clone()).or_insert_with(|| new(queue));
        }
        Ok(queues.into_values().collect())
    }

    /// Pauses or resumes a queue: a paused one hands out no runs and takes new ones.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn pause_queue(&self, queue: &QueueId, paused: bool) -> Result<(), ProducerError> {
        self.insist(None, || self.store().pause(queue, paused)).await
    }

    /// The workers that are known, lost ones too.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, ProducerError> {
        let now_ms = self.now_ms().await?;
        let workers = self.insist(None, || self.store().workers()).await?;
        let served = |(graph, fingerprint)| ServedView { graph, fingerprint };
        let view = |worker: WorkerRecord| WorkerView {
            state: state_of(&worker, now_ms),
            worker: worker.worker,
            host: worker.host,
            pid: worker.pid,
            since: Timestamp(worker.since_ms),
            beat_at: Timestamp(worker.beat_at_ms),
            graphs: worker.graphs.into_iter().map(served).collect(),
            queues: worker.queues,
            runs: worker.runs,
            concurrency: worker.concurrency,
            trouble: worker.trouble,
        };
        Ok(workers.into_iter().map(view).collect())
    }

    /// The graphs that were published.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn graphs(&self) -> Result<Vec<GraphView>, ProducerError> {
        let workers = self.live_workers().await?;
        let published = self.published(true).await?;
        let served = |record: &GraphRecord| {
            let is_it = |(graph, fingerprint): &(GraphId, Fingerprint)| {
                *graph == record.graph && *fingerprint == record.fingerprint
            };
            workers.iter().any(|worker| worker.graphs.iter().any(is_it))
        };
        let view = |record: &GraphRecord| GraphView {
            graph: record.graph.clone(),
            fingerprint: record.fingerprint.clone(),
            nodes: nodes(&record.drawing),
            served: served(record),
        };
        Ok(published.iter().map(view).collect())
    }
}

/// The number of nodes of a drawing.
fn nodes(drawing: &str) -> usize {
    let drawing: Value = serde_json::from_str(drawing).unwrap_or_default();
    drawing.get("nodes").and_then(Value::as_array).map_or(0, Vec::len)
}
