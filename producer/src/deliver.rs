//! The way of an answer to its question: found, in time, and sent again when the run moved.

use holdpoint_graph::{DEADLINE, Interrupt, RunId};
use holdpoint_storage::{SignalRecord, SignalRequest, StoreError};

use crate::{Decision, Producer, ProducerError, Signalled, signal::is_too_late};

impl Producer {
    /// A question whose deadline has passed is decided, whether or not a worker has noted it down.
    pub(crate) fn in_time(
        run: &RunId,
        asked: &Interrupt,
        record: &SignalRecord,
    ) -> Result<(), ProducerError> {
        match asked.deadline_ms {
            Some(at_ms) if at_ms <= record.at_ms => {
                let answer = asked.default_answer.clone().unwrap_or_default();
                let decision = Decision { answer, by: DEADLINE.to_owned(), at_ms };
                let (run, interrupt) = (run.clone(), Some(asked.interrupt.clone()));
                Err(ProducerError::Decided { run, interrupt, decision })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Looks for the question and sends the answer to it: again, when the run moved in between.
    /// Says whether the request had been taken before this call.
    pub(crate) async fn deliver(
        &self,
        wanted: &SignalRequest,
        record: &SignalRecord,
    ) -> Result<(Signalled, bool), ProducerError> {
        let mut tries = self.tries();
        loop {
            let head = self.head(&wanted.run).await?;
            let open = self.open_questions(&wanted.run).await?;
            let found = self.resolved(&head, &open, wanted.address.clone(), record).await;
            if found.as_ref().is_err_and(is_too_late)
                && let Some(done) = self.done_before(&wanted.run, record).await?
            {
                // Another call with the same request was quicker.
                return done.map(|done| (done, true));
            }
            let (address, ballot) = found?;
            let signal = SignalRequest { address, ballot, ..wanted.clone() };
            if let Some(told) = self.send(&signal, record).await? {
                return Ok(told);
            }
            // A connection may have sent it twice, and what moved the run was this answer.
            if let Some(done) = self.done_before(&wanted.run, record).await? {
                return done.map(|done| (done, false));
            }
            if !tries.again().await {
                let cause = format!("the run {} moves all the time", wanted.run);
                return Err(ProducerError::Store(StoreError::Unavailable { cause }));
            }
        }
    }
}
