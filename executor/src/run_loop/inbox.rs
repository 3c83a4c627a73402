//! Answers that wait: each goes to its own question, or stays until that opens.

use holdpoint_graph::{Answer, Event, Interrupt, InterruptId};
use holdpoint_storage::{InboxEntry, SignalRecord};

use super::{Ends, Flow, RunLoop};
use crate::journal::deadline_request;

impl RunLoop {
    /// Gives the questions whose deadline has passed their default answers: by way of the store,
    /// as anybody's, so that an answer that was acknowledged before is not passed over.
    pub(super) async fn pass_deadlines(&mut self, now_ms: i64) -> Flow {
        let due = self.progress.open().filter(|open| open.is_overdue(now_ms));
        let due: Vec<Interrupt> = due.cloned().collect();
        let (stored, fresh): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|open| self.journal.is_stored(&open.interrupt));
        // Nobody can have answered what only this owner knows of.
        let expire =
            |open: Interrupt| self.engine.expire(&mut self.progress, &open.interrupt, now_ms);
        for event in fresh.into_iter().filter_map(expire).collect::<Vec<_>>() {
            self.journal.push(event);
        }
        if stored.is_empty() {
            return Flow::Continue(());
        }
        match self.journal.pass_deadlines(&stored).await {
            Ok(inbox) => self.inbox = inbox,
            Err(error) => return self.give_up(&error),
        }
        Flow::Continue(())
    }

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
        if request == deadline_request(question) {
            let event = self.engine.expire(&mut self.progress, question, answer.at_ms)?;
            let ends = Ends::of(&event);
            self.journal.push(event);
            return ends;
        }
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
