//! Events as they are shown: flat JSON, one object for each.

use holdpoint_graph::{Beginning, Event, RunId, WorkerId};
use holdpoint_storage::{Partial, Record};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    InterruptView, PositionView, Producer, ProducerError, Timestamp, VoteView, format_time,
    view::position,
};

/// An event with its number, its time, and whose it was.
///
/// As JSON it is flat: `seq type at epoch worker`, then the event's own fields; a task stands there
/// as `node visit branch`, times as RFC 3339.
#[derive(Debug, Clone, PartialEq)]
pub struct EventView {
    /// Its number, from 0.
    pub seq: u64,
    /// When it was written, in ms since 1970.
    pub at_ms: i64,
    /// The epoch of the owner that wrote it; 0 when it was no owner.
    pub epoch: u64,
    /// The owner.
    pub worker: Option<WorkerId>,
    /// The event.
    pub event: Event,
}

/// A partial result.
///
/// As JSON: `after n type`, then what the node sent.
#[derive(Debug, Clone, PartialEq)]
pub struct PartialView {
    /// The number of the newest event when it was sent.
    pub after: Option<u64>,
    /// Its number within the run, from 1.
    pub n: u64,
    /// What was sent: the node and its value.
    pub body: Value,
}

/// A checkpoint of a run: a place another run may begin at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckpointView {
    /// The number of the event it is after.
    pub seq: u64,
    /// When that was written.
    pub at: Timestamp,
    /// The event's type.
    #[serde(rename = "type")]
    pub event: &'static str,
    /// The tasks the run stood at.
    pub position: Vec<PositionView>,
}

impl Serialize for EventView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = Map::new();
        map.insert("seq".into(), self.seq.into());
        map.insert("at".into(), format_time(self.at_ms).into());
        map.insert("epoch".into(), self.epoch.into());
        let worker = self.worker.as_ref().map(ToString::to_string);
        map.insert("worker".into(), worker.into());
        map.extend(fields(&self.event).map_err(serde::ser::Error::custom)?);
        map.insert("type".into(), self.event.type_name().into());
        map.serialize(serializer)
    }
}

impl Serialize for PartialView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match &self.body {
            Value::Object(map) => map.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::from_iter([("value".to_owned(), self.body.clone())]),
        };
        map.insert("after".into(), self.after.into());
        map.insert("n".into(), self.n.into());
        map.insert("type".into(), "partial".into());
        map.serialize(serializer)
    }
}

impl From<&Partial> for PartialView {
    fn from(partial: &Partial) -> Self {
        let body = serde_json::from_slice(&partial.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&partial.body).into_owned().into());
        Self { after: partial.after.checked_sub(1), n: partial.n, body }
    }
}

/// The event's own fields, flat.
fn fields(event: &Event) -> Result<Map<String, Value>, serde_json::Error> {
    let mut fields = match serde_json::to_value(event)? {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    if let Some(Value::Object(mut task)) = fields.remove("task") {
        task.entry("branch").or_insert_with(|| Value::Array(Vec::new()));
        fields.extend(task);
    }
    match event {
        Event::InterruptOpened { interrupt } => {
            fields.remove("interrupt");
            if let Value::Object(shown) =
                serde_json::to_value(InterruptView::from(interrupt.as_ref()))?
            {
                fields.extend(shown);
            }
        }
        Event::InterruptAnswered { answer, .. } => {
            fields.insert("answer".into(), answer.value.clone());
            fields.insert("decided_by".into(), answer.by.clone().into());
            fields.insert("decided_at".into(), format_time(answer.at_ms).into());
            fields.insert("comment".into(), answer.comment.clone().into());
            fields.insert("from".into(), answer.from.clone().into());
            fields.insert("args_hash".into(), answer.args_hash.clone().into());
        }
        Event::VoteCast { vote, .. } => {
            fields.insert("vote".into(), serde_json::to_value(VoteView::from(vote))?);
        }
        Event::StateEdited { shown, .. } if !shown.is_empty() => {
            let shown: Vec<InterruptView> = shown.iter().map(InterruptView::from).collect();
            fields.insert("shown".into(), serde_json::to_value(shown)?);
        }
        Event::RunStarted { begin: Beginning::Checkpoint { origin, patches, .. }, .. } => {
            // The other run's progress is in the other run; it may be megabytes.
            let begin = serde_json::json!({
                "checkpoint": { "origin": origin, "patches": patches },
            });
            fields.insert("begin".into(), begin);
        }
        Event::Claimed { .. } => {
            fields.remove("at_ms");
        }
        Event::RunStarted { begin: Beginning::Entry { .. }, .. }
        | Event::WorkerLost { .. }
        | Event::NodeStarted { .. }
        | Event::StepRecorded { .. }
        | Event::NodeCompleted { .. }
        | Event::NodeRouted { .. }
        | Event::NodeFailed { .. }
        | Event::NodeSlept { .. }
        | Event::BranchJoined { .. }
        | Event::InterruptReminded { .. }
        | Event::TimeUsed { .. }
        | Event::StateEdited { .. }
        | Event::RunParked { .. }
        | Event::RunRescheduled { .. }
        | Event::Migrated { .. }
        | Event::RunCompleted
        | Event::RunFailed { .. }
        | Event::RunCancelled { .. }
        | Event::Redriven { .. } => {}
    }
    Ok(fields.into_iter().map(shown_time).collect())
}

/// A field `x_ms` that holds a time becomes `x`, as text.
fn shown_time((name, value): (String, Value)) -> (String, Value) {
    let is_time = ["retry_at_ms", "wake_at_ms", "until_ms", "claimed_at_ms", "lost_at_ms"]
        .contains(&name.as_str());
    if !is_time {
        return (name, value);
    }
    let text = value.as_i64().map(format_time);
    (name.trim_end_matches("_ms").to_owned(), text.into())
}

/// Tells the owner of each record: the worker of the last claim with its epoch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners {
    last: Option<(u64, WorkerId)>,
}

impl Owners {
    pub(crate) fn view(&mut self, record: Record) -> EventView {
        if let Event::Claimed { worker, epoch, .. } = &record.event {
            self.last = Some((*epoch, worker.clone()));
        }
        let owner = self.last.as_ref().filter(|(epoch, _)| *epoch == record.epoch);
        EventView {
            seq: record.seq,
            at_ms: record.at_ms,
            epoch: record.epoch,
            worker: owner.map(|(_, worker)| worker.clone()),
            event: record.event,
        }
    }
}

impl Producer {
    /// The events of a run from number `from` on.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_STATE_CORRUPT` when its journal does not verify.
    pub async fn events(&self, run: &RunId, from: u64) -> Result<Vec<EventView>, ProducerError> {
        let journal = self.journal(run).await?;
        let mut owners = Owners::default();
        let views = journal.records.into_iter().map(|record| owners.view(record));
        Ok(views.filter(|event| event.seq >= from).collect())
    }

    /// The checkpoints of a run: each event that moved it, with where it stood afterwards.
    ///
    /// # Errors
    /// As [`Producer::events`].
    pub async fn history(&self, run: &RunId) -> Result<Vec<CheckpointView>, ProducerError> {
        let journal = self.journal(run).await?;
        let mut progress = holdpoint_graph::Progress::new();
        let mut rows = Vec::new();
        for record in &journal.records {
            let applied = progress.apply(&record.event);
            applied.map_err(|fault| ProducerError::corrupt(run, fault))?;
            if is_checkpoint(&record.event) && progress.is_begun() {
                rows.push(CheckpointView {
                    seq: record.seq,
                    at: Timestamp(record.at_ms),
                    event: record.event.type_name(),
                    position: position(&progress),
                });
            }
        }
        Ok(rows)
    }
}

/// Whether state or position are others after the event.
const fn is_checkpoint(event: &Event) -> bool {
    match event {
        Event::RunStarted { .. }
        | Event::StepRecorded { .. }
        | Event::NodeCompleted { .. }
        | Event::NodeRouted { .. }
        | Event::NodeFailed { .. }
        | Event::NodeSlept { .. }
        | Event::BranchJoined { .. }
        | Event::InterruptOpened { .. }
        | Event::InterruptAnswered { .. }
        | Event::VoteCast { .. }
        | Event::InterruptReminded { .. }
        | Event::StateEdited { .. }
        | Event::Migrated { .. }
        | Event::RunCompleted
        | Event::RunFailed { .. }
        | Event::RunCancelled { .. }
        | Event::Redriven { .. } => true,
        Event::Claimed { .. }
        | Event::WorkerLost { .. }
        | Event::TimeUsed { .. }
        | Event::NodeStarted { .. }
        | Event::RunParked { .. }
        | Event::RunRescheduled { .. } => false,
    }
}
