//! A run's events as they are committed, for a reader in this process.

use std::sync::Arc;

use holdpoint_graph::{Event, RunId};
use holdpoint_storage::Record;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::EventSink;

/// Items that wait for a slow reader; beyond it the reader is told of a gap.
const STREAM_MAX: usize = 256;

/// A journal event in the words of a step-by-step view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamEvent {
    /// `node_start`, `node_end`, `edge_transition`, `checkpoint`, `interrupt`, `error`,
    /// `completed`, `replay_start` or `custom`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The number of the journal event.
    pub seq: u64,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// What the event wrote, or a partial result's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When, in ms since 1970.
    pub timestamp_ms: i64,
}

/// What a stream yields.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// The next event. Journal events come in order and after their commit.
    Event(StreamEvent),
    /// The reader was too slow for so many items: it reads the journal again from the last
    /// number it saw. The run never waits.
    Gap {
        /// How many items were left out.
        missed: u64,
    },
}

/// A reader of a runner's events. Ends with the runner.
#[derive(Debug)]
pub struct RunStream {
    items: broadcast::Receiver<StreamEvent>,
}

impl RunStream {
    /// The next item; none when the run's execution has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<StreamItem> {
        match self.items.recv().await {
            Ok(event) => Some(StreamItem::Event(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(StreamItem::Gap { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// The sink behind streams.
#[derive(Debug, Clone)]
pub(crate) struct StreamSink {
    items: Arc<broadcast::Sender<StreamEvent>>,
}

impl StreamSink {
    pub(crate) fn new() -> Self {
        Self { items: Arc::new(broadcast::Sender::new(STREAM_MAX)) }
    }

    pub(crate) fn stream(&self) -> RunStream {
        RunStream { items: self.items.subscribe() }
    }
}

impl EventSink for StreamSink {
    fn committed(&self, run: &RunId, record: &Record) {
        for event in views(run, record) {
            // No reader is no fault.
            let _ = self.items.send(event);
        }
    }

    fn partial(&self, run: &RunId, node: &str, value: &Value) {
        let event = StreamEvent {
            kind: "custom",
            run_id: run.clone(),
            seq: 0,
            node_id: Some(node.to_owned()),
            data: Some(value.clone()),
            error: None,
            timestamp_ms: 0,
        };
        let _ = self.items.send(event);
    }
}

/// A record in the words of the view; most have none.
fn views(run: &RunId, record: &Record) -> Vec<StreamEvent> {
    let event = |kind, node: Option<&str>| StreamEvent {
        kind,
        run_id: run.clone(),
        seq: record.seq,
        node_id: node.map(str::to_owned),
        data: None,
        error: None,
        timestamp_ms: record.at_ms,
    };
    let json = |value| serde_json::to_value(value).ok();
    match &record.event {
        Event::RunStarted { begin, .. } => match begin {
            holdpoint_graph::Beginning::Entry { .. } => vec![],
            holdpoint_graph::Beginning::Checkpoint { .. } => vec![event("replay_start", None)],
        },
        Event::NodeCompleted { task, patches, next, .. } => {
            let node = Some(task.node.as_str());
            let mut views = vec![
                event("node_start", node),
                StreamEvent { data: json(patches), ..event("node_end", node) },
                event("checkpoint", node),
            ];
            views.extend(targets(next).into_iter().map(|to| event("edge_transition", Some(to))));
            views
        }
        Event::NodeFailed { task, error, .. } => vec![StreamEvent {
            error: Some(error.message.clone()),
            ..event("error", Some(&task.node))
        }],
        Event::InterruptOpened { interrupt } => {
            let node = interrupt.task.as_ref().map(|task| task.node.as_str());
            vec![event("interrupt", node)]
        }
        Event::RunCompleted => vec![event("completed", None)],
        Event::RunFailed { reason } => vec![StreamEvent {
            error: Some(reason.message.clone()),
            ..event("error", reason.node.as_deref())
        }],
        Event::Claimed { .. }
        | Event::WorkerLost { .. }
        | Event::NodeStarted { .. }
        | Event::NodeSlept { .. }
        | Event::StepRecorded { .. }
        | Event::NodeRouted { .. }
        | Event::BranchJoined { .. }
        | Event::InterruptAnswered { .. }
        | Event::VoteCast { .. }
        | Event::InterruptReminded { .. }
        | Event::TimeUsed { .. }
        | Event::StateEdited { .. }
        | Event::Migrated { .. }
        | Event::RunParked { .. }
        | Event::RunRescheduled { .. }
        | Event::RunCancelled { .. }
        | Event::Redriven { .. } => vec![],
    }
}

fn targets(next: &holdpoint_graph::Routing) -> Vec<&str> {
    use holdpoint_graph::{END, Routing};
    match next {
        Routing::To(node) if node == END => vec![],
        Routing::To(node) => vec![node],
        Routing::Unresolved(_) => vec![],
        Routing::Fork(fork) => fork.branches.iter().flat_map(firsts).collect(),
    }
}

fn firsts(start: &holdpoint_graph::BranchStart) -> Vec<&str> {
    use holdpoint_graph::BranchStart;
    match start {
        BranchStart::Node { node, .. } => vec![node],
        BranchStart::Fork(inner) => inner.branches.iter().flat_map(firsts).collect(),
        BranchStart::Join => vec![],
    }
}
