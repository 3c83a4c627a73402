//! Answers that wait: each goes to its own question, or stays until that opens.

use holdpoint_graph::{Answer, Event, InterruptId};
use holdpoint_storage::{InboxEntry, SignalRecord};

use super::{Ends, RunLoop};

impl RunLoop {
    /// Takes the answers whose questions are open. Says whether one of them ends the run.
    pub(super) fn take_inbox(&mut self) -> Option<Ends> {
        let mut ends = None;
        let mut inbox = std::mem::take(&mut self.inbox);
        // The votes on a question come before the one that decides it.
        inbox.sort_by_key(|entry| entry.vote().is_none());
        for entry in inbox {
            match self.question_of(&entry) {
                Some(question) => {
                    let answered = self.answer(&question, entry);
                    ends = ends.or(answered);
                }
                // It answers a gate that is yet to open.
                None if entry.key.starts_with('g') => self.inbox.push(entry),
                // It was taken while the question was being decided: it stands in the record.
                None if entry.vote().is_some() => self.late_vote(entry),
                // Its question is closed: there is nothing left to answer.
                None => self.journal.consume(entry.key),
            }
        }
        ends
    }

    fn question_of(&self, entry: &InboxEntry) -> Option<InterruptId> {
        let mut open = self.progress.open();
        if let Some((id, _)) = entry.vote() {
            let found = open.find(|open| open.interrupt.as_str() == id);
            return found.map(|open| open.interrupt.clone());
        }
        let found = match entry.key.split_at_checked(1)? {
            ("i", id) => open.find(|open| open.interrupt.as_str() == id),
            ("g", gate) => open.find(|open| open.gate.as_deref() == Some(gate)),
            _ => None,
        };
        found.map(|open| open.interrupt.clone())
    }

    /// Takes an entry out of the inbox and reads it; none when it was taken before.
    fn taken(&mut self, entry: InboxEntry) -> Option<(Answer, String)> {
        let read = SignalRecord::decode(&entry.record);
        let key = entry.key.clone();
        self.journal.consume(entry.key);
        let record = match read {
            Ok(record) => record,
            Err(fault) => {
                let run = &self.facts.run;
                tracing::error!(%run, %key, %fault, "an answer cannot be read; dropped");
                return None;
            }
        };
        if self.progress.has_applied(&record.request) {
            return None;
        }
        Some((record.to_answer(), record.request))
    }

    fn late_vote(&mut self, entry: InboxEntry) {
        let id = entry.vote().and_then(|(id, _)| InterruptId::new(id).ok());
        let taken = self.taken(entry);
        let (Some(interrupt), Some((vote, request))) = (id, taken) else { return };
        let event = Event::VoteCast { interrupt, vote, request };
        self.progress.apply(&event).expect("a vote may come late");
        self.journal.push(event);
    }

    fn answer(&mut self, question: &InterruptId, entry: InboxEntry) -> Option<Ends> {
        let (answer, request) = self.taken(entry)?;
        let run = &self.facts.run;
        match self.engine.answer(&mut self.progress, question, answer, &request) {
            Ok(event) => {
                let ends = Ends::of(&event);
                self.journal.push(event);
                ends
            }
            Err(fault) => {
                tracing::warn!(%run, %question, %fault, "an early answer does not fit; dropped");
                None
            }
        }
    }
}
