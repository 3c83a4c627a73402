//! A run as it is shown: the JSON of `runs show`, and reading runs.

use std::{collections::BTreeMap, time::Duration};

use holdpoint_graph::{
    Answer, Fingerprint, GraphId, Interrupt, InterruptId, InterruptKind, Origin, Progress, QueueId,
    ReasonCode, RunId, RunStatus, State, TaskStatus,
};
use holdpoint_storage::RunHead;
use serde::Serialize;
use serde_json::Value;

use crate::{Attempt, Producer, ProducerError, Timestamp, attempts::attempts, journal::Journal};

/// The longest a waiting caller goes without looking, should a notice be lost.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunView {
    /// The run.
    pub run: RunId,
    /// Its session; the run's own id when it has no named one.
    pub session: String,
    /// Its graph.
    pub graph: GraphId,
    /// The structure it is pinned to, from its first claim on.
    pub fingerprint: Option<Fingerprint>,
    /// Its queue.
    pub queue: QueueId,
    /// Its state.
    pub status: RunStatus,
    /// Whether somebody asked to cancel it and its worker has not ended it yet.
    pub is_cancelling: bool,
    /// Why it failed.
    pub reason: Option<ReasonView>,
    /// The graph state: the fold of all events.
    pub state: State,
    /// The number of its newest event; none before the first.
    pub seq: Option<u64>,
    /// The tasks it stands at.
    pub position: Vec<PositionView>,
    /// Its open questions.
    pub interrupts: Vec<InterruptView>,
    /// Who held it.
    pub attempts: Vec<Attempt>,
    /// Counts over its life.
    pub counters: CountersView,
    /// 0 to 9, higher first.
    pub priority: u8,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Where a forked or replayed run comes from.
    pub origin: Option<Origin>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When it is due, when it waits for a time.
    pub due_at: Option<Timestamp>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonView {
    /// The code.
    pub code: ReasonCode,
    /// What happened; lists do not know it.
    pub message: Option<String>,
    /// The node it happened at.
    pub node: Option<String>,
}

/// A task that a run stands at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PositionView {
    /// The node.
    pub node: String,
    /// How often the run has come to it, from 1.
    pub visit: u32,
    /// The branch at each level of fork.
    pub branch: Vec<u32>,
    /// Where it stands.
    pub status: TaskStatus,
}

/// Counts over a run's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountersView {
    /// Distinct tasks that ended.
    pub steps: u64,
    /// Failed attempts of nodes.
    pub node_errors: u64,
    /// Lost workers.
    pub lost_workers: u64,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterruptView {
    /// The id of this opening.
    pub interrupt: InterruptId,
    /// The node that waits; none when the whole run does.
    pub node: Option<String>,
    /// The gate's name, for gates.
    pub gate: Option<String>,
    /// What it is about.
    pub kind: InterruptKind,
    /// The question.
    pub question: String,
    /// The JSON Schema of an answer.
    pub schema: Option<Value>,
    /// The answers with a meaning of their own.
    pub allowed: Vec<String>,
    /// When it opened.
    pub opened_at: Timestamp,
    /// When it is answered by itself.
    pub deadline: Option<Timestamp>,
    /// Who is asked.
    pub assignees: Vec<String>,
    /// Which groups are asked.
    pub groups: Vec<String>,
    /// How many different people must give the same answer.
    pub quorum: u32,
    /// The votes so far.
    pub votes: Vec<VoteView>,
    /// What the decision is about, when the question names keys of the state.
    pub args: Option<State>,
    /// The keys of the state that an answer may change.
    pub editable: Vec<String>,
    /// The choices that need a comment.
    pub comment_on: Vec<String>,
    /// When the next reminder is due.
    pub reminder: Option<Timestamp>,
    /// The hash of what the decision is about.
    pub args_hash: String,
}

/// An answer that counts towards a quorum.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VoteView {
    /// The answer.
    pub answer: Value,
    /// Who gave it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// A comment.
    pub comment: Option<String>,
    /// Where it came from.
    pub from: Option<String>,
    /// The hash of what it was given for.
    pub args_hash: Option<String>,
}

impl From<&Answer> for VoteView {
    fn from(vote: &Answer) -> Self {
        Self {
            answer: vote.value.clone(),
            by: vote.by.clone(),
            at: Timestamp(vote.at_ms),
            comment: vote.comment.clone(),
            from: vote.from.clone(),
            args_hash: vote.args_hash.clone(),
        }
    }
}

impl From<&Interrupt> for InterruptView {
    fn from(open: &Interrupt) -> Self {
        Self {
            interrupt: open.interrupt.clone(),
            node: open.task.as_ref().map(|task| task.node.clone()),
            gate: open.gate.clone(),
            kind: open.kind,
            question: open.question.clone(),
            schema: open.schema.clone(),
            allowed: open.allowed.clone(),
            opened_at: Timestamp(open.opened_at_ms),
            deadline: open.deadline_ms.map(Timestamp),
            assignees: open.assignees.clone(),
            groups: open.groups.clone(),
            quorum: open.quorum,
            votes: open.votes.iter().map(VoteView::from).collect(),
            args: open.args.clone(),
            editable: open.editable.clone(),
            comment_on: open.comment_on.clone(),
            reminder: open.reminders.first().map(|next| Timestamp(next.at_ms)),
            args_hash: open.args_hash.clone(),
        }
    }
}

/// Until when a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until the run has ended.
    Terminal,
    /// Until it is parked, or has ended.
    Parked,
}

impl Until {
    /// Whether the wait is over.
    pub(crate) const fn is_reached(self, status: RunStatus) -> bool {
        match self {
            Self::Terminal => status.is_terminal(),
            Self::Parked => status.is_terminal() || matches!(status, RunStatus::Parked),
        }
    }
}

impl Producer {
    /// Everything that is known of a run.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_STATE_CORRUPT` when its journal does not verify.
    pub async fn get(&self, run: &RunId) -> Result<RunView, ProducerError> {
        let journal = self.journal(run).await?;
        let progress = journal.progress()?;
        Ok(view(&journal, &progress))
    }

    /// The state after the event of number `seq`, or after the newest.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_NO_CHECKPOINT` when there is no such event.
    pub async fn state_at(&self, run: &RunId, seq: Option<u64>) -> Result<State, ProducerError> {
        let progress = match seq {
            None => self.newest(run).await?.1,
            Some(seq) => self.journal(run).await?.checkpoint(seq)?,
        };
        Ok(progress.state().clone())
    }

    /// Waits until the run is where the caller wants it. None: the time ran out before; without a
    /// time it waits for ever. May be dropped at any time.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_STORE_UNAVAILABLE` when the store did not answer until the time ran out.
    pub async fn wait(
        &self,
        run: &RunId,
        until: Until,
        timeout: Option<Duration>,
    ) -> Result<Option<RunView>, ProducerError> {
        let since = self.monotonic();
        loop {
            let passed = self.monotonic().saturating_duration_since(since);
            let left = timeout.map_or(LOOK_AGAIN, |timeout| timeout.saturating_sub(passed));
            match self.head(run).await {
                Ok(head) if until.is_reached(head.status()) => {
                    return self.get(run).await.map(Some);
                }
                Ok(_) if left.is_zero() => return Ok(None),
                Ok(_) => self.store().changed(run, left.min(LOOK_AGAIN)).await,
                Err(error) if !error.is_retryable() || left.is_zero() => return Err(error),
                // The store had its patience in the call; a pause so that this is no busy poll.
                Err(_) => tokio::time::sleep(left.min(LOOK_AGAIN)).await,
            }
        }
    }
}

/// The session's name as it is shown.
pub(crate) fn session_of(head: &RunHead) -> String {
    head.session.as_ref().map_or_else(|| head.run.to_string(), ToString::to_string)
}

/// The tags as they are shown.
pub(crate) fn tags_of(head: &RunHead) -> BTreeMap<String, String> {
    let pair = |tag: &String| {
        let (tag, value) = tag.split_once('=').unwrap_or((tag, ""));
        (tag.to_owned(), value.to_owned())
    };
    head.tags.iter().map(pair).collect()
}

/// Where a progress stands.
pub(crate) fn position(progress: &Progress) -> Vec<PositionView> {
    let one = |view: holdpoint_graph::TaskView<'_>| PositionView {
        node: view.task.node,
        visit: view.task.visit,
        branch: view.task.branch,
        status: view.status,
    };
    progress.tasks().into_iter().map(one).collect()
}

fn view(journal: &Journal, progress: &Progress) -> RunView {
    let head = &journal.head;
    let losses = u64::try_from(head.losses.len()).unwrap_or(u64::MAX);
    RunView {
        run: head.run.clone(),
        session: session_of(head),
        graph: head.graph.clone(),
        fingerprint: head.fingerprint.clone(),
        queue: head.queue.clone(),
        status: head.status(),
        is_cancelling: head.cancel.is_some() && !head.status().is_terminal(),
        reason: reason(head, progress),
        state: progress.state().clone(),
        seq: head.seq.checked_sub(1),
        position: position(progress),
        interrupts: progress.open().map(InterruptView::from).collect(),
        attempts: attempts(head, &journal.records),
        counters: CountersView {
            steps: progress.steps(),
            node_errors: progress.counters().node_errors,
            lost_workers: progress.counters().lost_workers.saturating_add(losses),
        },
        priority: head.priority,
        tags: tags_of(head),
        origin: progress.origin().cloned(),
        created_at: Timestamp(head.created_at_ms),
        updated_at: Timestamp(head.updated_at_ms),
        started_at: head.started_at_ms.map(Timestamp),
        finished_at: head.finished_at_ms.map(Timestamp),
        due_at: head.due_at_ms().map(Timestamp),
    }
}

pub(crate) fn reason(head: &RunHead, progress: &Progress) -> Option<ReasonView> {
    let code = head.reason()?;
    let told = progress.reason().filter(|reason| reason.code == code);
    Some(ReasonView {
        code,
        message: told.map(|reason| reason.message.clone()),
        node: told.and_then(|reason| reason.node.clone()),
    })
}
