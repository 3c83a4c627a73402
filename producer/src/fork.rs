//! New runs from old ones: fork, replay, and going on with a session.

use holdpoint_graph::{
    CheckpointStart, InterruptId, KeyId, Memory, Origin, Patch, RequestId, RunId, RunPayload,
    RunStatus, SessionId, State,
};
use holdpoint_storage::{IfBusy, NewRun, RunHead, When};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Producer, ProducerError, Receipt,
    control::{check_edited, patches},
    request::{name, payload_hash},
};

/// How a run is forked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForkOptions {
    /// The number of the event after which the new run begins.
    pub at_seq: u64,
    /// Keys of the state that are set at the beginning; values replace what is there.
    pub edit: Option<Value>,
    /// The session of the new run. Default: one of its own.
    pub session: Option<String>,
    /// The id of the new run. Default: a new one.
    pub run: Option<String>,
    /// An idempotency key, as for any new run.
    pub key: Option<String>,
}

/// How a session went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resumed {
    /// The run.
    pub run: RunId,
    /// Its state.
    pub status: RunStatus,
    /// Whether it had failed and was sent on now.
    pub is_redriven: bool,
}

impl Producer {
    /// A new run from a checkpoint of another, perhaps edited. What was recorded and answered
    /// before the point is kept, gates after it ask again, and the other run stays as it is.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_NO_CHECKPOINT` when there is no such event or the run had not begun;
    /// what an enqueue is refused with.
    pub async fn fork(&self, run: &RunId, options: &ForkOptions) -> Result<Receipt, ProducerError> {
        let edit = options.edit.as_ref().map(|edit| patches("edit", edit)).transpose()?;
        self.branch(run, options, edit.unwrap_or_default(), false).await
    }

    /// A new run from a checkpoint of another, unchanged, in a session of its own.
    ///
    /// # Errors
    /// As [`Producer::fork`].
    pub async fn replay(&self, run: &RunId, at_seq: u64) -> Result<Receipt, ProducerError> {
        let options = ForkOptions { at_seq, ..ForkOptions::default() };
        self.branch(run, &options, Vec::new(), true).await
    }

    async fn branch(
        &self,
        run: &RunId,
        options: &ForkOptions,
        patches: Vec<Patch>,
        is_replay: bool,
    ) -> Result<Receipt, ProducerError> {
        let session = options.session.as_ref().map(SessionId::new).transpose()?;
        let key = options.key.as_ref().map(KeyId::new).transpose()?;
        let wanted = options.run.as_ref().map(RunId::new).transpose()?;
        let journal = self.journal(run).await?;
        let progress = journal.checkpoint(options.at_seq)?;
        if !progress.is_begun() || progress.graph().is_none() {
            let why = format!("the run {run} had not begun at event {}", options.at_seq);
            return Err(ProducerError::NoCheckpoint { why });
        }
        check_edited("edit", &progress, &patches)?;
        let source = self.insist(None, || self.store().payload(run)).await?;
        let source = source.as_deref().map(RunPayload::decode).transpose()?;
        let source = source.unwrap_or_else(|| RunPayload::new(State::new()));
        let fingerprint = progress.fingerprint().cloned();
        let origin = Origin { run: run.clone(), seq: options.at_seq, is_replay };
        let payload = RunPayload {
            max_steps: Some(progress.max_steps()).filter(|max| *max > 0).or(source.max_steps),
            checkpoint: Some(CheckpointStart { origin, progress: Box::new(progress), patches }),
            memory: Memory::None,
            initial: State::new(),
            resume: false,
            ..source
        };
        let names = name(wanted, None, self.now_ms().await?)?;
        let new = self.begun_at(&journal.head, names, session, &payload);
        self.store_one(&NewRun { key, fingerprint, ..new }).await
    }

    fn begun_at(
        &self,
        source: &RunHead,
        (run, request): (RunId, RequestId),
        session: Option<SessionId>,
        payload: &RunPayload,
    ) -> NewRun {
        NewRun {
            run,
            request,
            graph: source.graph.clone(),
            fingerprint: None,
            queue: source.queue.clone(),
            payload_hash: payload_hash(&source.graph, session.as_ref(), payload),
            session,
            if_busy: IfBusy::default(),
            payload: payload.encode(),
            priority: source.priority,
            start: When::In(0),
            expires: None,
            deadline: None,
            key: None,
            tags: source.tags.clone(),
            queue_depth_max: self.queue_depth_max(),
        }
    }

    /// Goes on with a session's unfinished run: a queued or running one goes on by itself, a
    /// failed one is redriven, an ended one tells its end.
    ///
    /// # Errors
    /// `E_RUN_ACTIVE` when it waits for answers, naming its questions; `E_NO_CHECKPOINT` when the
    /// session has no run.
    pub async fn resume(&self, session: &SessionId, by: &str) -> Result<Resumed, ProducerError> {
        let known = self.insist(None, || self.store().session(session)).await?;
        let run = match known {
            Some(known) => known.active.or(known.last),
            None => Some(RunId::new(session)?),
        };
        let head = match &run {
            Some(run) => self.insist(None, || self.store().head(run)).await?,
            None => None,
        };
        let head = head.filter(|head| match &head.session {
            Some(named) => named == session,
            None => head.run.as_str() == session.as_str(),
        });
        let Some(head) = head else {
            let why = format!("the session {session} has no run");
            return Err(ProducerError::NoCheckpoint { why });
        };
        let (run, status) = (head.run.clone(), head.status());
        match status {
            RunStatus::Failed => {
                let status = self.redrive(&run, None, by).await?;
                Ok(Resumed { run, status, is_redriven: true })
            }
            RunStatus::Parked => {
                let open = self.open_questions(&run).await?;
                let ids: Vec<&InterruptId> = open.iter().map(|open| &open.interrupt).collect();
                if ids.is_empty() {
                    return Ok(Resumed { run, status, is_redriven: false });
                }
                let ids: Vec<String> = ids.into_iter().map(ToString::to_string).collect();
                let why = format!("it waits for an answer to {}", ids.join(", "));
                Err(ProducerError::RunActive { run, status, why })
            }
            RunStatus::Scheduled
            | RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Completed
            | RunStatus::Cancelled => Ok(Resumed { run, status, is_redriven: false }),
        }
    }
}
