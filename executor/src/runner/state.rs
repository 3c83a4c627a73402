//! What a runner returns: the run's whole state, or why it did not run.

use chrono::{DateTime, SecondsFormat};
use holdpoint_graph::{Progress, Refusal, RunId, RunStatus, SessionId, State};
use holdpoint_storage::{SignalReply, StoreError};
use serde::Serialize;

use super::Runner;
use crate::{Outcome, journal::load};

/// Why a runner did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An input is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The session has no run.
    #[error("no_checkpoint: the session {0} has no run")]
    NoCheckpoint(SessionId),
    /// The session has an active run.
    #[error("the session is busy with run {0}")]
    Busy(RunId),
    /// The answer was not taken.
    #[error("the answer was not taken: {0:?}")]
    NotAnswered(SignalReply),
    /// The run cannot go on from where it is.
    #[error("run {run} is {}: {why}", status.as_str())]
    WrongState {
        /// The run.
        run: RunId,
        /// Its state.
        status: RunStatus,
        /// What is needed.
        why: &'static str,
    },
    /// The run was taken over or given up while it executed here.
    #[error("the run did not stay here: {0:?}")]
    NotOurs(Outcome),
}

/// The whole state of a run, in the names that existing readers know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunState {
    /// The run.
    pub run_id: RunId,
    /// Its session.
    pub session_id: String,
    /// Its graph.
    pub graph_id: String,
    /// The node it stands at; of several the first.
    pub current_node: String,
    /// Its state.
    pub status: RunStatus,
    /// The state of its data.
    pub state: State,
    /// The events of its journal.
    pub seq_num: u64,
    /// When it was first claimed.
    pub started_at: Option<String>,
    /// When it last changed.
    pub updated_at: String,
}

impl Runner {
    pub(super) async fn progress(&self, run: &RunId) -> Result<Progress, RunnerError> {
        let Some(part) = self.store.checkpoint(run).await? else { return Ok(Progress::new()) };
        let snapshot = part.snapshot.as_deref();
        Ok(load(self.store.namespace(), run, snapshot, &part.records)?.progress)
    }

    pub(super) async fn state(&self, run: &RunId) -> Result<RunState, RunnerError> {
        let head = self.head(run).await?;
        let progress = self.progress(run).await?;
        let current = progress.tasks().first().map(|view| view.task.node.clone());
        Ok(RunState {
            run_id: run.clone(),
            session_id: head.session.as_ref().map_or(run.as_str(), |s| s.as_str()).to_owned(),
            graph_id: head.graph.to_string(),
            current_node: current.unwrap_or_default(),
            status: head.status(),
            state: progress.state().clone(),
            seq_num: head.seq,
            started_at: head.started_at_ms.map(text),
            updated_at: text(head.updated_at_ms),
        })
    }
}

fn text(at_ms: i64) -> String {
    let at = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
