//! What people do to runs: cancel, redrive, edit, start now, migrate.
//!
//! Each is one event, appended at the end of the journal as it was read. When the run moved
//! meanwhile, it is read again and judged anew.

use holdpoint_graph::{
    Code, Event, Fingerprint, Interrupt, Patch, Progress, Refusal, RequestId, RunId, RunStatus,
    State, json,
    limits::{COMMENT_BYTES_MAX, STATE_BYTES_MAX},
};
use holdpoint_storage::{
    AppendKind, AppendReply, AppendRequest, Chain, OpenedInterrupt, Random, RunHead,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Producer, ProducerError,
    answer::at_most,
    check::{object, steps},
};

/// What became of a wish to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// The run is cancelled.
    Cancelled,
    /// Its worker was told and will end it.
    Cancelling,
}

impl CancelOutcome {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Cancelling => "cancelling",
        }
    }
}

/// What follows from an append.
enum Step<T> {
    /// It is over.
    Done(T),
    /// The run moved: look again.
    Again,
}

impl Producer {
    /// Cancels a run: at once when no worker has it. A repeat is no error.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_RUN_FINAL` when it completed or failed.
    pub async fn cancel(&self, run: &RunId, by: &str) -> Result<CancelOutcome, ProducerError> {
        at_most("by", by.len(), COMMENT_BYTES_MAX)?;
        let request = Random.request_id();
        let event = Event::RunCancelled { by: by.to_owned() };
        let kind = AppendKind::Cancel { rollback: false };
        let mut tries = self.tries();
        loop {
            let head = self.head(run).await?;
            match head.status() {
                RunStatus::Cancelled => return Ok(CancelOutcome::Cancelled),
                RunStatus::Completed | RunStatus::Failed => return Err(final_run(&head)),
                RunStatus::Scheduled
                | RunStatus::Queued
                | RunStatus::Running
                | RunStatus::Parked => {}
            }
            match self.append(&head, &request, &event, &kind).await? {
                AppendReply::Done { .. } => return Ok(CancelOutcome::Cancelled),
                AppendReply::Cancelling => return Ok(CancelOutcome::Cancelling),
                AppendReply::NotFound => return Err(ProducerError::no_run(run)),
                AppendReply::Moved | AppendReply::WrongState { .. } => {}
            }
            if !tries.again().await {
                return Err(moved(&head));
            }
        }
    }

    /// Sends a failed run on at its last checkpoint, perhaps with a new step limit. A repeat,
    /// before a worker has it, is no error.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_NOT_FAILED` with its state; `E_RANGE` for the limit.
    pub async fn redrive(
        &self,
        run: &RunId,
        max_steps: Option<u64>,
        by: &str,
    ) -> Result<RunStatus, ProducerError> {
        at_most("by", by.len(), COMMENT_BYTES_MAX)?;
        let max_steps = max_steps.map(steps).transpose()?;
        let request = Random.request_id();
        let event = Event::Redriven { by: by.to_owned(), max_steps };
        let mut tries = self.tries();
        loop {
            let head = self.head(run).await?;
            let status = head.status();
            if status != RunStatus::Failed {
                if status == RunStatus::Queued && self.is_redriven(&head).await? {
                    return Ok(status);
                }
                return Err(ProducerError::NotFailed { run: run.clone(), status });
            }
            let reply = self.append(&head, &request, &event, &AppendKind::Redrive).await?;
            match after(&head, reply)? {
                Step::Done(status) => return Ok(status),
                Step::Again if !tries.again().await => return Err(moved(&head)),
                Step::Again => {}
            }
        }
    }

    /// Whether the newest event of a run is that it was redriven.
    async fn is_redriven(&self, head: &RunHead) -> Result<bool, ProducerError> {
        let journal = self.journal(&head.run).await?;
        let newest = journal.records.last().map(|record| &record.event);
        Ok(matches!(newest, Some(Event::Redriven { .. })))
    }

    /// Sets keys of a parked run's state. `if_seq` is the number of the newest event that the
    /// caller saw. Values replace what is there: a reducer is code of the worker's and is not
    /// asked. Gives the number of the edit's event.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_SEQ` when the run moved; `E_RUN_ACTIVE` or `E_RUN_FINAL` when it is not
    /// parked; `E_TYPE`, `E_DEPTH`, `E_TOO_LARGE` for the update.
    pub async fn edit(
        &self,
        run: &RunId,
        update: &Value,
        if_seq: u64,
        by: &str,
    ) -> Result<u64, ProducerError> {
        at_most("by", by.len(), COMMENT_BYTES_MAX)?;
        let patches = patches("update", update)?;
        let (head, progress) = self.newest(run).await?;
        check_edited("update", &progress, &patches)?;
        if head.seq.checked_sub(1) != Some(if_seq) {
            return Err(moved(&head));
        }
        if head.status() != RunStatus::Parked {
            return Err(not_now(&head, "only a parked run can be edited"));
        }
        let mut edited = progress.state().clone();
        edited.apply(&patches);
        let shown: Vec<Interrupt> =
            progress.open().filter_map(|open| open.shown_anew(&edited)).collect();
        let kind = AppendKind::Edit { shown: shown.iter().map(OpenedInterrupt::of).collect() };
        let event = Event::StateEdited { patches, by: by.to_owned(), shown };
        let reply = self.append(&head, &Random.request_id(), &event, &kind).await?;
        match after(&head, reply)? {
            Step::Done(_) => Ok(head.seq),
            Step::Again => {
                let head = self.head(run).await?;
                match head.seq.checked_sub(1) == Some(if_seq) {
                    true => Err(not_now(&head, "only a parked run can be edited")),
                    false => Err(moved(&head)),
                }
            }
        }
    }

    /// Makes a scheduled run due. A run that is due already stays as it is.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_RUN_ACTIVE` when it is parked; `E_RUN_FINAL` when it has ended.
    pub async fn start_now(&self, run: &RunId) -> Result<RunStatus, ProducerError> {
        match self.insist(None, || self.store().start_now(run)).await? {
            None => Err(ProducerError::no_run(run)),
            Some(true) => Ok(RunStatus::Queued),
            Some(false) => {
                let head = self.head(run).await?;
                match head.status() {
                    RunStatus::Queued | RunStatus::Running | RunStatus::Scheduled => {
                        Ok(head.status())
                    }
                    RunStatus::Parked
                    | RunStatus::Completed
                    | RunStatus::Failed
                    | RunStatus::Cancelled => {
                        Err(not_now(&head, "it waits for no time; answer its question"))
                    }
                }
            }
        }
    }

    /// Pins a run that no worker has to another structure of its graph. Whether its position
    /// exists there is for the caller to check; a run that is pinned to `to` already stays.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_GRAPH_MISMATCH` when it is pinned to another structure than `from`;
    /// `E_RUN_ACTIVE` when a worker has it; `E_RUN_FINAL` when it has ended.
    pub async fn migrate(
        &self,
        run: &RunId,
        from: &Fingerprint,
        to: &Fingerprint,
        by: &str,
    ) -> Result<RunStatus, ProducerError> {
        at_most("by", by.len(), COMMENT_BYTES_MAX)?;
        let request = Random.request_id();
        let (f, t) = (from.clone(), to.clone());
        let event = Event::Migrated { from: f.clone(), to: t.clone(), by: by.to_owned() };
        let kind = AppendKind::Migrate { from: f, to: t };
        let mut tries = self.tries();
        loop {
            let head = self.head(run).await?;
            if head.status().is_terminal() || head.status() == RunStatus::Running {
                return Err(not_now(&head, "only a run that no worker has can be migrated"));
            }
            if head.fingerprint.as_ref() == Some(to) {
                return Ok(head.status());
            }
            if head.fingerprint.as_ref() != Some(from) {
                let pinned = head.fingerprint.as_ref().map_or("no structure", Fingerprint::as_str);
                let message = format!("is pinned to {pinned}, not to {from}");
                return Err(Refusal::new(Code::GraphMismatch, "run", message).into());
            }
            match after(&head, self.append(&head, &request, &event, &kind).await?)? {
                Step::Done(status) => return Ok(status),
                Step::Again if !tries.again().await => return Err(moved(&head)),
                Step::Again => {}
            }
        }
    }

    /// Appends one event behind what the head says.
    async fn append(
        &self,
        head: &RunHead,
        request: &RequestId,
        event: &Event,
        kind: &AppendKind,
    ) -> Result<AppendReply, ProducerError> {
        let mut chain = Chain::at(self.namespace(), &head.run, head.seq, &head.hash)?;
        let record = chain.encode(self.now_ms().await?, 0, event);
        let append = AppendRequest {
            run: head.run.clone(),
            request: request.clone(),
            from: head.seq,
            previous: head.hash.clone(),
            record,
            hash: chain.hash(),
        };
        self.insist(Some(request), || self.store().append(&append, kind)).await
    }
}

fn after(head: &RunHead, reply: AppendReply) -> Result<Step<RunStatus>, ProducerError> {
    match reply {
        AppendReply::Done { status, .. } => Ok(Step::Done(status)),
        AppendReply::NotFound => Err(ProducerError::no_run(&head.run)),
        AppendReply::Moved | AppendReply::WrongState { .. } => Ok(Step::Again),
        AppendReply::Cancelling => Err(not_now(head, "it is being cancelled")),
    }
}

fn moved(head: &RunHead) -> ProducerError {
    ProducerError::Moved { run: head.run.clone(), newest: head.seq.checked_sub(1) }
}

pub(crate) fn final_run(head: &RunHead) -> ProducerError {
    let (run, status) = (head.run.clone(), head.status());
    ProducerError::RunFinal { run, status, decision: None }
}

/// The error of a call that the run's state does not allow.
fn not_now(head: &RunHead, why: &str) -> ProducerError {
    if head.status().is_terminal() {
        return final_run(head);
    }
    let (run, status) = (head.run.clone(), head.status());
    ProducerError::RunActive { run, status, why: why.to_owned() }
}

/// An update as patches that set its keys.
pub(crate) fn patches(field: &str, update: &Value) -> Result<Vec<Patch>, Refusal> {
    let update = object(field, update)?;
    Ok(update.into_iter().map(|(key, value)| Patch::set(key, value)).collect())
}

/// The edited state must be one that a run may have.
pub(crate) fn check_edited(
    field: &str,
    progress: &Progress,
    patches: &[Patch],
) -> Result<(), Refusal> {
    let mut state: State = progress.state().clone();
    state.apply(patches);
    at_most(field, state.json_len(), STATE_BYTES_MAX)?;
    json::check_depth(&state.into_json()).map_err(|refusal| refusal.within(field))
}
