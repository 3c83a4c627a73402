//! Answers that wait: each goes to its own question, or stays until that opens.

use holdpoint_graph::{Answer, InterruptId, Outcome};
use holdpoint_storage::{InboxEntry, SignalRecord};

use super::RunLoop;

impl RunLoop {
    /// Takes the answers whose questions are open. Says whether one of them cancels the run.
    pub(super) fn take_inbox(&mut self) -> bool {
        let mut is_cancelled = false;
        for entry in std::mem::take(&mut self.inbox) {
            match self.question_of(&entry) {
                Some(question) => is_cancelled |= self.answer(&question, entry),
                // It answers a gate that is yet to open.
                None if entry.key.starts_with('g') => self.inbox.push(entry),
                // Its question is closed: there is nothing left to answer.
                None => self.journal.consume(entry.key),
            }
        }
        is_cancelled
    }

    fn question_of(&self, entry: &InboxEntry) -> Option<InterruptId> {
        let mut open = self.progress.open();
        let found = match entry.key.split_at_checked(1)? {
            ("i", id) => open.find(|open| open.interrupt.as_str() == id),
            ("g", gate) => open.find(|open| open.gate.as_deref() == Some(gate)),
            _ => None,
        };
        found.map(|open| open.interrupt.clone())
    }

    fn answer(&mut self, question: &InterruptId, entry: InboxEntry) -> bool {
        let run = &self.facts.run;
        let record = match SignalRecord::decode(&entry.record) {
            Ok(record) => record,
            Err(fault) => {
                tracing::error!(%run, %question, %fault, "an answer cannot be read; dropped");
                self.journal.consume(entry.key);
                return false;
            }
        };
        if self.progress.has_applied(&record.request) {
            self.journal.consume(entry.key);
            return false;
        }
        let answer = Answer {
            value: record.answer,
            by: record.by,
            at_ms: record.at_ms,
            comment: record.comment,
        };
        let taken = self.engine.answer(&mut self.progress, question, answer, &record.request);
        self.journal.consume(entry.key);
        match taken {
            Ok(event) => {
                let is_cancelled = match &event {
                    holdpoint_graph::Event::InterruptAnswered { outcome, .. } => {
                        *outcome == Outcome::Cancelled
                    }
                    _ => false,
                };
                self.journal.push(event);
                is_cancelled
            }
            Err(fault) => {
                tracing::warn!(%run, %question, %fault, "an early answer does not fit; dropped");
                false
            }
        }
    }
}
