//! Why a run is not moving: the cause, in words, and what to do about it.

use holdpoint_graph::{
    Fingerprint, Life, Progress, ReasonCode, RunId, RunStatus, TaskStatus, printable,
};
use holdpoint_storage::{RunHead, WorkerRecord};
use serde::Serialize;

use crate::{Producer, ProducerError, Timestamp, format_time, stats::serves, view::reason};

/// Why a run is not moving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The run.
    pub run: RunId,
    /// Its state.
    pub status: RunStatus,
    /// The cause.
    pub cause: Cause,
    /// The cause in words, with the values.
    pub text: String,
    /// What to do; empty when nothing is to be done.
    pub fix: String,
    /// Since when.
    pub since: Timestamp,
}

/// A cause as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// It is claimable, and no worker took it yet.
    WaitingForWorker,
    /// Workers live, and none knows its graph.
    UnknownGraph,
    /// Workers know its graph, in other structures than the one it is pinned to.
    WrongVersion,
    /// Its queue is paused.
    QueuePaused,
    /// Another run of its session is before it.
    BehindSession,
    /// It waits for its time.
    Scheduled,
    /// It waits to try again after an error.
    Retrying,
    /// It lost its worker.
    WorkerLost,
    /// It waits for an answer.
    Parked,
    /// A worker has it.
    Running,
    /// It is to be cancelled.
    Cancelling,
    /// It failed.
    Failed,
    /// It ended well.
    Completed,
    /// It was cancelled.
    Cancelled,
}

/// A cause with its words.
struct Told {
    cause: Cause,
    text: String,
    fix: String,
}

fn told(cause: Cause, text: impl Into<String>, fix: impl Into<String>) -> Told {
    Told { cause, text: text.into(), fix: fix.into() }
}

impl Producer {
    /// Why a run is not moving.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_STATE_CORRUPT` when its journal does not verify.
    pub async fn why(&self, run: &RunId) -> Result<Why, ProducerError> {
        let (head, progress) = self.newest(run).await?;
        let told = match &head.life {
            Life::Scheduled { until_ms } => scheduled(&head, &progress, *until_ms),
            Life::Queued => self.queued(&head).await?,
            Life::Running { lease } => {
                running(&head, lease.worker.as_str(), self.now_ms().await? > lease.deadline_ms)
            }
            Life::Parked { .. } => parked(&head, &progress),
            Life::Completed => told(Cause::Completed, "it ended well", ""),
            Life::Failed { .. } => failed(&head, &progress),
            Life::Cancelled => told(Cause::Cancelled, "it was cancelled", ""),
        };
        Ok(Why {
            run: run.clone(),
            status: head.status(),
            cause: told.cause,
            text: told.text,
            fix: told.fix,
            since: Timestamp(head.updated_at_ms),
        })
    }

    async fn queued(&self, head: &RunHead) -> Result<Told, ProducerError> {
        if head.cancel.is_some() {
            let text = "it is to be cancelled and waits for a worker that ends it";
            return Ok(told(Cause::Cancelling, text, "start a worker, if none runs"));
        }
        if let Some(session) = &head.session {
            let session = self.insist(None, || self.store().session(session)).await?;
            let active = session.and_then(|session| session.active);
            if let Some(active) = active.filter(|active| *active != head.run) {
                let text = format!("run {active} of its session is before it");
                let fix = format!("see `holdpoint runs why {active}`");
                return Ok(told(Cause::BehindSession, text, fix));
            }
        }
        let stats = self.insist(None, || self.store().stats()).await?;
        if stats.paused.contains(&head.queue) {
            let text = format!("its queue {} is paused", head.queue);
            let fix = format!("`holdpoint queues resume {}`", head.queue);
            return Ok(told(Cause::QueuePaused, text, fix));
        }
        Ok(no_worker(head, &self.live_workers().await?))
    }
}

/// Why no worker took a run that is claimable.
fn no_worker(head: &RunHead, live: &[WorkerRecord]) -> Told {
    let start = "start a worker of a program that has this graph";
    if live.is_empty() {
        return told(Cause::WaitingForWorker, "no live worker", start);
    }
    let served: Vec<&Fingerprint> = live
        .iter()
        .flat_map(|worker| &worker.graphs)
        .filter(|(graph, _)| *graph == head.graph)
        .map(|(_, fingerprint)| fingerprint)
        .collect();
    if served.is_empty() {
        let text = format!("none of the {} live workers serves graph {}", live.len(), head.graph);
        return told(Cause::UnknownGraph, text, start);
    }
    if let Some(pinned) = head.fingerprint.as_ref().filter(|pinned| !served.contains(pinned)) {
        let mut others: Vec<&str> = served.iter().map(|served| served.as_str()).collect();
        others.sort_unstable();
        others.dedup();
        let others = others.join(", ");
        let graph = &head.graph;
        let text = format!("it is pinned to version {pinned} of {graph}, workers serve {others}");
        let fix = format!(
            "start a worker with version {pinned}, or see `holdpoint graphs migrate {graph} \
             --from {pinned} --to {others} --dry-run`"
        );
        return told(Cause::WrongVersion, text, fix);
    }
    let fit = live.iter().filter(|worker| serves(worker, &head.lane())).count();
    if fit == 0 {
        let text = format!("no live worker serves its graph in queue {}", head.queue);
        let fix = format!("start a worker with `--queues {}`", head.queue);
        return told(Cause::WaitingForWorker, text, fix);
    }
    let text = format!("{fit} live workers can take it, and have not yet");
    told(Cause::WaitingForWorker, text, "wait, or start more workers")
}

fn scheduled(head: &RunHead, progress: &Progress, until_ms: i64) -> Told {
    let until = format_time(until_ms);
    let now = format!("wait, or `holdpoint runs start-now {}`", head.run);
    if let Some(loss) = head.losses.last() {
        let evidence = printable(&loss.evidence, 80);
        let text = format!(
            "worker {} was lost ({evidence}), the {}. in a row; it is claimable again at {until}",
            loss.worker, head.lost_in_row
        );
        return told(Cause::WorkerLost, text, now);
    }
    let tasks = progress.tasks();
    let retrying = tasks.iter().find(|task| task.status == TaskStatus::Retrying);
    if let Some((task, error)) = retrying.and_then(|t| t.inner.error().map(|error| (t, error))) {
        let (node, code) = (printable(&task.task.node, 80), printable(&error.code, 40));
        let message = printable(&error.message, 200);
        let attempt = task.inner.attempt();
        let text = format!("attempt {attempt} of {node} is at {until}, after {code}: {message}");
        return told(Cause::Retrying, text, now);
    }
    if let Some(asleep) = tasks.iter().find(|task| task.status == TaskStatus::Sleeping) {
        let node = printable(&asleep.task.node, 80);
        return told(Cause::Scheduled, format!("its node {node} sleeps until {until}"), now);
    }
    told(Cause::Scheduled, format!("it is due at {until}"), now)
}

fn running(head: &RunHead, worker: &str, is_late: bool) -> Told {
    let see = "see `holdpoint workers`";
    if is_late {
        let text = format!("worker {worker} has it, and its lease ran out");
        return told(Cause::WorkerLost, text, "another worker takes it over, if one runs");
    }
    if head.cancel.is_some() {
        let text = format!("worker {worker} was told to cancel it");
        return told(Cause::Cancelling, text, see);
    }
    told(Cause::Running, format!("worker {worker} has it"), see)
}

fn parked(head: &RunHead, progress: &Progress) -> Told {
    let run = &head.run;
    let open: Vec<_> = progress.open().collect();
    let Some(first) = open.iter().min_by_key(|open| (open.opened_at_ms, &open.interrupt)) else {
        let until = head.due_at_ms().map_or_else(|| "ever".to_owned(), format_time);
        let text = format!("it waits for no answer, until {until}");
        return told(Cause::Parked, text, format!("`holdpoint signal {run}` answers a gate"));
    };
    let more = match open.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let name = first.gate.as_ref().or(first.key.as_ref());
    let name = name.map_or_else(|| first.kind.as_str().to_owned(), |name| printable(name, 80));
    let question = printable(&first.question, 200);
    let text = format!("it waits for an answer to {name}: {question}{more}");
    let id = &first.interrupt;
    let fix = match first.allowed.as_slice() {
        [approve, reject] if approve == "approve" && reject == "reject" => {
            format!("`holdpoint approve {run} --interrupt {id}`, or reject")
        }
        _ => format!("`holdpoint signal {run} --interrupt {id} --answer JSON`"),
    };
    told(Cause::Parked, text, fix)
}

fn failed(head: &RunHead, progress: &Progress) -> Told {
    let Some(reason) = reason(head, progress) else {
        return told(Cause::Failed, "it failed", "");
    };
    let at = reason.node.map_or_else(String::new, |n| format!(" at {}", printable(&n, 80)));
    let message = reason.message.map_or_else(String::new, |m| format!(": {}", printable(&m, 300)));
    let text = format!("it failed with {}{at}{message}", reason.code.as_str());
    let redrive = format!("`holdpoint runs redrive {}`", head.run);
    let fix = match reason.code {
        ReasonCode::NodeError => format!("mend the cause, then {redrive}"),
        ReasonCode::CrashLoop => format!("see what the workers' logs say, then {redrive}"),
        ReasonCode::Expired => "enqueue it again with more time".to_owned(),
        ReasonCode::IncompatibleGraph => {
            format!("serve the version it is pinned to, then {redrive}")
        }
        ReasonCode::Undecodable => "see `holdpoint doctor`".to_owned(),
        ReasonCode::StepLimit => format!("if it is no endless loop, {redrive} with --max-steps"),
        ReasonCode::BudgetExceeded => format!("{redrive}, which asks for a larger budget again"),
        ReasonCode::WriteConflict => {
            "give the key a reducer, or let one branch write it; then enqueue anew".to_owned()
        }
    };
    told(Cause::Failed, text, fix)
}
