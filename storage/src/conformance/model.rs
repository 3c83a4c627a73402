//! The reference model: what every backend must do, in memory, as plainly as it can be said.
//!
//! It is no store: it knows no time (each call is told it), no namespace, no concurrency, and
//! leaves out what is only about those: the hold of the reaper after a stall, and the rule that
//! ticks follow each other at a distance. Every move of a run goes through [`Life`]. The property
//! `model_agrees` runs random sequences here and on a backend and compares.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use holdpoint_graph::{
    GraphId, InterruptId, KeyId, Life, QueueId, RequestId, RunId, SessionId, WorkerId,
};

use crate::{InboxEntry, OpenedInterrupt, QuestionFilter, RunHead, SessionRecord};

mod enqueue;
mod outside;
mod owner;
mod upkeep;

/// How many request ids a run remembers.
const REQUESTS_KEPT: usize = 8;

/// Everything a store of one namespace knows.
#[derive(Debug, Clone, Default)]
pub struct Model {
    runs: BTreeMap<RunId, ModelRun>,
    sessions: BTreeMap<SessionId, ModelSession>,
    keys: BTreeMap<KeyId, (RunId, String)>,
    paused: BTreeSet<QueueId>,
    /// The nonce of each worker's last claim that took something.
    nonces: BTreeMap<WorkerId, String>,
    places: u64,
}

/// A run and all that belongs to it.
#[derive(Debug, Clone)]
struct ModelRun {
    head: RunHead,
    payload: Vec<u8>,
    /// Its place in the line, given at its enqueue and kept for life.
    place: u64,
    requests: VecDeque<RequestId>,
    /// Open questions, oldest first.
    open: Vec<OpenedInterrupt>,
    inbox: BTreeMap<String, Waiting>,
    snapshot: Option<Vec<u8>>,
    journal: Vec<Vec<u8>>,
}

/// An answer that waits.
#[derive(Debug, Clone)]
struct Waiting {
    request: RequestId,
    record: Vec<u8>,
}

#[derive(Debug, Clone)]
struct ModelSession {
    graph: GraphId,
    /// The active run and those behind it.
    order: VecDeque<RunId>,
    last: Option<RunId>,
}

impl Model {
    /// The head of a run.
    #[must_use]
    pub fn head(&self, run: &RunId) -> Option<&RunHead> {
        self.runs.get(run).map(|run| &run.head)
    }

    /// All heads.
    pub fn heads(&self) -> impl Iterator<Item = &RunHead> {
        self.runs.values().map(|run| &run.head)
    }

    /// The journal of a run.
    #[must_use]
    pub fn journal(&self, run: &RunId) -> &[Vec<u8>] {
        self.runs.get(run).map_or(&[], |run| &run.journal)
    }

    /// The open questions of a run, oldest first.
    #[must_use]
    pub fn questions(&self, run: &RunId) -> &[OpenedInterrupt] {
        self.runs.get(run).map_or(&[], |run| &run.open)
    }

    /// The open questions that a filter shows, in no order; of times the model knows nothing.
    #[must_use]
    pub fn shown(&self, filter: &QuestionFilter) -> Vec<(RunId, String)> {
        let is_of_run = |run: &&ModelRun| {
            let (head, tag) = (&run.head, filter.tag.as_ref());
            filter.run.as_ref().is_none_or(|run| *run == head.run)
                && filter.graph.as_ref().is_none_or(|graph| *graph == head.graph)
                && tag.is_none_or(|tag| head.tags.contains(tag))
        };
        let is_asked = |question: &&OpenedInterrupt| {
            let is_for_all = question.assignees.is_empty() && question.groups.is_empty();
            let names_nobody = filter.assignee.is_none() && filter.groups.is_empty();
            is_for_all
                || names_nobody
                || question.assignees.iter().any(|name| filter.assignee.as_ref() == Some(name))
                || question.groups.iter().any(|name| filter.groups.contains(name))
        };
        let of_run = |run: &ModelRun| {
            let shown = run.open.iter().filter(is_asked);
            let named = |open: &OpenedInterrupt| (run.head.run.clone(), open.interrupt.to_string());
            shown.map(named).collect::<Vec<_>>()
        };
        self.runs.values().filter(is_of_run).flat_map(of_run).collect()
    }

    /// The answers that wait for a run, by their keys.
    #[must_use]
    pub fn inbox(&self, run: &RunId) -> Vec<InboxEntry> {
        self.runs.get(run).map_or_else(Vec::new, ModelRun::entries)
    }

    /// A session.
    #[must_use]
    pub fn session(&self, session: &SessionId) -> Option<SessionRecord> {
        let found = self.sessions.get(session)?;
        let runs = self.heads().filter(|head| head.session.as_ref() == Some(session)).count();
        Some(SessionRecord {
            session: session.clone(),
            graph: found.graph.clone(),
            active: found.order.front().cloned(),
            waiting: found.order.iter().skip(1).cloned().collect(),
            last: found.last.clone(),
            runs: runs as u64,
        })
    }

    /// Pauses or resumes a queue.
    pub fn pause(&mut self, queue: &QueueId, paused: bool) {
        if paused {
            self.paused.insert(queue.clone());
        } else {
            self.paused.remove(queue);
        }
    }

    /// Whether a claim may take the run: queued, its queue not paused, its session's turn.
    fn is_claimable(&self, run: &ModelRun) -> bool {
        run.head.life == Life::Queued
            && !self.paused.contains(&run.head.queue)
            && self.order_of(run).is_none_or(|order| order.front() == Some(&run.head.run))
    }

    fn order_of(&self, run: &ModelRun) -> Option<&VecDeque<RunId>> {
        let session = run.head.session.as_ref()?;
        self.sessions.get(session).map(|session| &session.order)
    }

    /// Puts a moved run back. One that waits for a worker stands in its session's order.
    fn put(&mut self, run: ModelRun) {
        let id = run.head.run.clone();
        if run.head.life == Life::Queued
            && let Some(session) = &run.head.session
            && let Some(session) = self.sessions.get_mut(session)
            && !session.order.contains(&id)
        {
            session.order.push_back(id.clone());
        }
        self.runs.insert(id, run);
    }

    /// Puts a run back that has just ended: nothing waits for it, and its session goes on. A run
    /// that never began (it is not pinned) is nothing for the next one to start from.
    fn put_ended(&mut self, mut run: ModelRun, counts: bool, now_ms: i64) {
        let is_completed = run.head.life == Life::Completed;
        let has_begun = is_completed || run.head.fingerprint.is_some();
        let counts = counts && has_begun;
        run.head.finished_at_ms = Some(now_ms);
        run.open.clear();
        run.inbox.clear();
        if let Some(session) = &run.head.session
            && let Some(session) = self.sessions.get_mut(session)
        {
            session.order.retain(|id| *id != run.head.run);
            if counts {
                session.last = Some(run.head.run.clone());
            }
        }
        self.runs.insert(run.head.run.clone(), run);
    }
}

impl ModelRun {
    fn entries(&self) -> Vec<InboxEntry> {
        let entry = |(key, waiting): (&String, &Waiting)| InboxEntry {
            key: key.clone(),
            record: waiting.record.clone(),
        };
        self.inbox.iter().map(entry).collect()
    }

    fn knows(&self, request: &RequestId) -> bool {
        self.requests.contains(request)
    }

    fn remember(&mut self, request: &RequestId) {
        self.requests.push_back(request.clone());
        if self.requests.len() > REQUESTS_KEPT {
            self.requests.pop_front();
        }
    }

    /// The answer that waits for an open question, by its own key or by its gate's.
    fn waiting_for(&self, question: &OpenedInterrupt) -> Option<&Waiting> {
        let own = InboxEntry::of_interrupt(&question.interrupt);
        let gate = question.gate.as_deref().map(InboxEntry::of_gate);
        self.inbox.get(&own).or_else(|| self.inbox.get(&gate?))
    }

    fn question(&self, interrupt: &InterruptId) -> Option<&OpenedInterrupt> {
        self.open.iter().find(|question| question.interrupt == *interrupt)
    }
}

#[cfg(test)]
mod tests;
