//! What became of one question: for whoever showed it and no longer finds it in the list.

use holdpoint_graph::{InterruptId, RunId, RunStatus};
use holdpoint_storage::{InboxEntry, SignalRecord};

use crate::{Decision, Producer, ProducerError, signal::decision_of};

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It takes answers. Lists leave it out while its run is not parked, as when a worker writes
    /// down a vote.
    Open,
    /// It was answered; a worker may be yet to take the answer.
    Decided(Decision),
    /// Its run ended without an answer to it, in this state.
    Closed(RunStatus),
    /// Its run was deleted.
    Deleted,
}

impl Producer {
    /// What became of a question that was open once.
    ///
    /// # Errors
    /// `E_STATE_CORRUPT` when the run's journal was altered; those of the store.
    pub async fn fate(&self, run: &RunId, interrupt: &InterruptId) -> Result<Fate, ProducerError> {
        let status = match self.head(run).await {
            Ok(head) => head.status(),
            Err(ProducerError::NotFound { .. }) => return Ok(Fate::Deleted),
            Err(error) => return Err(error),
        };
        // The inbox before the journal: an answer moves from there to here.
        let inbox = self.insist(None, || self.store().inbox(run)).await?;
        let slot = InboxEntry::of_interrupt(interrupt);
        let waits = inbox.iter().find(|entry| entry.key == slot);
        if let Some(first) = waits.and_then(|entry| SignalRecord::decode(&entry.record).ok()) {
            return Ok(Fate::Decided(decision_of(&first)));
        }
        if self.open_questions(run).await?.iter().any(|open| open.interrupt == *interrupt) {
            return Ok(Fate::Open);
        }
        match self.decision(run, interrupt).await {
            Ok((Some(decision), _)) => Ok(Fate::Decided(decision)),
            Ok((None, _)) => Ok(Fate::Closed(status)),
            Err(ProducerError::NotFound { .. }) => Ok(Fate::Deleted),
            Err(error) => Err(error),
        }
    }
}
