//! What happens to runs in this process, as it is committed.

use holdpoint_executor::EventSink;
use holdpoint_graph::{Event, RunId, printable};
use holdpoint_producer::{EventView, InterruptView, Timestamp};
use holdpoint_storage::Record;
use serde_json::Value;

use crate::{context::Asker, out::Out, show};

/// Prints a line for each event that a person wants to see.
#[derive(Debug)]
pub(crate) struct Live {
    out: Out,
    asker: Asker,
}

impl Live {
    /// Prints to `out`; `asker` knows the commands that answer questions.
    pub(crate) fn new(out: Out, asker: Asker) -> Self {
        Self { out, asker }
    }

    fn line(&self, run: &RunId, record: &Record) -> Option<String> {
        let paint = self.out.paint;
        let text = match &record.event {
            Event::RunStarted { graph, .. } => paint.dim(&format!("started {graph}")),
            Event::NodeCompleted { task, .. } => {
                format!("{} {}", paint.green("✓"), printable(&task.node, 120))
            }
            Event::NodeFailed { task, error, retry_at_ms, .. } => {
                let again = if retry_at_ms.is_some() { ", again soon" } else { "" };
                let text = format!("✗ {}: {}{again}", task.node, error.message);
                paint.red(&printable(&text, 300))
            }
            Event::InterruptOpened { interrupt } => {
                let text = format!("? {}", printable(&interrupt.question, 300));
                let mut text = paint.yellow(&text);
                for command in show::answers(run.as_str(), &InterruptView::from(interrupt.as_ref()))
                {
                    text.push_str(&format!("\n              {}", self.asker.command(&command)));
                }
                text
            }
            Event::InterruptAnswered { answer, .. } => {
                let text = format!("answered {} by {}", answer.value, answer.by);
                paint.cyan(&printable(&text, 300))
            }
            Event::VoteCast { vote, .. } => {
                let text = format!("vote {} by {}", vote.value, vote.by);
                paint.cyan(&printable(&text, 300))
            }
            Event::InterruptReminded { also, .. } => {
                let also = match also.as_slice() {
                    [] => String::new(),
                    names => format!(", now asked too: {}", names.join(", ")),
                };
                paint.yellow(&printable(&format!("reminded{also}"), 300))
            }
            Event::WorkerLost { evidence, .. } => {
                paint.red(&printable(&format!("lost its worker: {evidence}"), 300))
            }
            Event::RunCompleted => paint.green("completed"),
            Event::RunFailed { reason } => {
                let text = format!("failed: {} {}", reason.code.as_str(), reason.message);
                paint.red(&printable(&text, 500))
            }
            Event::RunCancelled { .. } => paint.dim("cancelled"),
            Event::Redriven { .. } => paint.cyan("redriven"),
            Event::Claimed { .. }
            | Event::NodeStarted { .. }
            | Event::StepRecorded { .. }
            | Event::NodeSlept { .. }
            | Event::NodeRouted { .. }
            | Event::BranchJoined { .. }
            | Event::TimeUsed { .. }
            | Event::StateEdited { .. }
            | Event::RunParked { .. }
            | Event::RunRescheduled { .. }
            | Event::Migrated { .. } => return None,
        };
        let time = Timestamp(record.at_ms).to_string();
        let clock = time.get(11..19).unwrap_or_default();
        Some(format!("{}  {}  {text}", paint.dim(clock), paint.bold(run.as_str())))
    }
}

impl EventSink for Live {
    fn committed(&self, run: &RunId, record: &Record) {
        // A reader that went away must not end the runs: what cannot be shown is dropped.
        if self.out.is_json {
            let view = EventView {
                seq: record.seq,
                at_ms: record.at_ms,
                epoch: record.epoch,
                worker: None,
                event: record.event.clone(),
            };
            if let Ok(Value::Object(mut fields)) = serde_json::to_value(view) {
                fields.insert("run".to_owned(), run.as_str().into());
                drop(self.out.json(&fields));
            }
        } else if let Some(line) = self.line(run, record) {
            drop(self.out.line(line));
        }
    }

    fn partial(&self, run: &RunId, node: &str, value: &Value) {
        if !self.out.is_json {
            let text = printable(&format!("{node}: {value}"), 200);
            let run = self.out.paint.bold(run.as_str());
            drop(self.out.line(format_args!("          {run}  {}", self.out.paint.dim(&text))));
        }
    }
}
