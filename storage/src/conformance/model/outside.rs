//! What others than the owner do to a run in the model: signals and appends.

use holdpoint_graph::{Ballot, InterruptId, Life, RequestId, RunId, RunStatus};

use super::{Model, ModelRun, Waiting};
use crate::{
    Address, AppendKind, AppendReply, AppendRequest, CancelWish, ChainHash, Durability, InboxEntry,
    OpenedInterrupt, SignalReply, SignalRequest, SignalsReply, Vote,
};

const DURABILITY: Durability = Durability::Buffered;

impl Model {
    /// Stores answers, all or none.
    pub fn signal_all(&mut self, requests: &[SignalRequest], now_ms: i64) -> SignalsReply {
        let before = self.clone();
        let mut replies = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            let reply = self.signal(request, now_ms);
            if !reply.is_taken() {
                *self = before;
                return SignalsReply::Refused { index, reply };
            }
            replies.push(reply);
        }
        SignalsReply::Taken(replies)
    }

    /// Stores an answer.
    pub fn signal(&mut self, request: &SignalRequest, now_ms: i64) -> SignalReply {
        let Some(mut run) = self.runs.get(&request.run).cloned() else {
            return SignalReply::NotFound;
        };
        let Ok(woken) = run.head.life.clone().signal() else {
            return SignalReply::Final { status: run.head.status() };
        };
        let durability = DURABILITY;
        let (key, reply) = match addressed(&run, request) {
            Ok(Target::Question(interrupt)) => {
                run.head.life = woken;
                let vote = request.ballot.as_ref().filter(|b| !run.decides(&interrupt, b));
                let key = match vote {
                    Some(ballot) => InboxEntry::of_vote(&interrupt, ballot),
                    None => InboxEntry::of_interrupt(&interrupt),
                };
                let (is_vote, is_repeat) = (vote.is_some(), false);
                (key, SignalReply::Delivered { interrupt, is_vote, is_repeat, durability })
            }
            Ok(Target::LaterGate(gate)) => {
                (InboxEntry::of_gate(&gate), SignalReply::Kept { durability })
            }
            Err(refused) => return refused,
        };
        let (request, record) = (request.request.clone(), request.record.clone());
        run.inbox.insert(key, Waiting { request, record });
        run.head.updated_at_ms = now_ms;
        self.put(run);
        reply
    }

    /// Appends an event to a run that nobody has.
    pub fn append(
        &mut self,
        request: &AppendRequest,
        kind: &AppendKind,
        now_ms: i64,
    ) -> AppendReply {
        let Some(mut run) = self.runs.get(&request.run).cloned() else {
            return AppendReply::NotFound;
        };
        let status = run.head.status();
        let is_cancel = matches!(kind, AppendKind::Cancel { .. });
        if run.knows(&request.request) || (is_cancel && run.head.life == Life::Cancelled) {
            return AppendReply::Done { status, durability: DURABILITY };
        }
        if let (AppendKind::Cancel { rollback }, RunStatus::Running) = (kind, status) {
            let wish = if *rollback { CancelWish::RolledBack } else { CancelWish::Asked };
            run.head.cancel = run.head.cancel.or(Some(wish));
            self.put(run);
            return AppendReply::Cancelling;
        }
        let Some(life) = moved(&run, kind) else { return AppendReply::WrongState { status } };
        if request.from != run.head.seq || request.previous != run.head.hash {
            return AppendReply::Moved;
        }
        run.remember(&request.request);
        run.append(std::slice::from_ref(&request.record), &request.hash);
        run.head.life = life;
        run.head.updated_at_ms = now_ms;
        let status = run.head.status();
        self.settle(run, kind, now_ms);
        AppendReply::Done { status, durability: DURABILITY }
    }

    /// What the kind of append changes beside the state.
    fn settle(&mut self, mut run: ModelRun, kind: &AppendKind, now_ms: i64) {
        match kind {
            AppendKind::Cancel { rollback } => {
                let is_undone = *rollback || run.head.cancel == Some(CancelWish::RolledBack);
                return self.put_ended(run, !is_undone, now_ms);
            }
            AppendKind::Edit { shown } => run.show(shown),
            AppendKind::Redrive => {
                run.head.finished_at_ms = None;
                run.head.lost_in_row = 0;
                run.head.lost_in_life = 0;
                run.head.losses.clear();
            }
            AppendKind::Migrate { to, .. } => run.head.fingerprint = Some(to.clone()),
        }
        self.put(run);
    }

    /// Makes a scheduled run due.
    pub fn start_now(&mut self, run: &RunId) -> Option<bool> {
        let mut run = self.runs.get(run)?.clone();
        let Ok(life) = run.head.life.clone().start_now() else { return Some(false) };
        run.head.life = life;
        self.put(run);
        Some(true)
    }
}

/// Where an answer goes.
enum Target {
    Question(InterruptId),
    LaterGate(String),
}

fn addressed(run: &ModelRun, request: &SignalRequest) -> Result<Target, SignalReply> {
    match request.address {
        Address::Unopened { seq, .. } if seq != run.head.seq => return Err(SignalReply::Moved),
        Address::Unopened { .. } | Address::Interrupt(_) | Address::Gate(_) | Address::Only => {}
    }
    let fitting: Vec<&OpenedInterrupt> = match &request.address {
        Address::Interrupt(id) => run.question(id).into_iter().collect(),
        Address::Gate(gate) | Address::Unopened { gate, .. } => {
            run.open.iter().filter(|q| q.gate.as_ref() == Some(gate)).collect()
        }
        Address::Only => run.open.iter().collect(),
    };
    match (fitting.as_slice(), &request.address) {
        ([question], _) => to_question(run, question, request),
        ([], Address::Interrupt(_)) => Err(SignalReply::NotOpen),
        ([], Address::Only) => Err(SignalReply::NoQuestion),
        ([], Address::Gate(gate) | Address::Unopened { gate, .. }) => {
            match run.inbox.get(&InboxEntry::of_gate(gate)) {
                None => Ok(Target::LaterGate(gate.clone())),
                Some(known) if known.request == request.request => {
                    Err(SignalReply::Kept { durability: DURABILITY })
                }
                Some(known) => Err(SignalReply::Decided { record: known.record.clone() }),
            }
        }
        (several, _) => {
            let open = several.iter().map(|question| question.interrupt.clone()).collect();
            Err(SignalReply::Ambiguous { open })
        }
    }
}

fn to_question(
    run: &ModelRun,
    question: &OpenedInterrupt,
    request: &SignalRequest,
) -> Result<Target, SignalReply> {
    if request.args_hash.as_ref().is_some_and(|hash| *hash != question.args_hash) {
        return Err(SignalReply::ArgsChanged { args_hash: question.args_hash.clone() });
    }
    let again = |is_vote: bool| SignalReply::Delivered {
        interrupt: question.interrupt.clone(),
        is_vote,
        is_repeat: true,
        durability: DURABILITY,
    };
    match run.waiting_for(question) {
        Some(known) if known.request == request.request => return Err(again(false)),
        Some(known) => return Err(SignalReply::Decided { record: known.record.clone() }),
        None => {}
    }
    let Some(ballot) = &request.ballot else {
        return Ok(Target::Question(question.interrupt.clone()));
    };
    for (vote, by) in run.votes(&question.interrupt) {
        if vote.voter == ballot.voter {
            let is_repeat = by.is_some_and(|by| *by == request.request);
            return Err(if is_repeat { again(true) } else { SignalReply::Voted });
        }
    }
    Ok(Target::Question(question.interrupt.clone()))
}

impl ModelRun {
    /// The votes on a question: the counted ones, and those that wait with their requests.
    pub(super) fn votes(&self, interrupt: &InterruptId) -> Vec<(Vote, Option<&RequestId>)> {
        let counted = self.question(interrupt).map(|q| q.votes.clone()).unwrap_or_default();
        let waiting = self.inbox.iter().filter_map(|(key, waiting)| {
            let entry = InboxEntry { key: key.clone(), record: Vec::new() };
            let (id, vote) = entry.vote()?;
            (id == interrupt.as_str()).then_some((vote, Some(&waiting.request)))
        });
        counted.into_iter().map(|vote| (vote, None)).chain(waiting).collect()
    }

    fn decides(&self, interrupt: &InterruptId, ballot: &Ballot) -> bool {
        let votes = self.votes(interrupt);
        let same = votes.iter().filter(|(vote, _)| vote.choice == ballot.choice).count();
        same as u64 + 1 >= u64::from(ballot.needed)
    }
}

/// The state after the append; none when the state does not allow it.
fn moved(run: &ModelRun, kind: &AppendKind) -> Option<Life> {
    let life = run.head.life.clone();
    let waits = match run.head.status() {
        RunStatus::Scheduled | RunStatus::Queued | RunStatus::Parked => true,
        RunStatus::Running | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => {
            false
        }
    };
    match kind {
        AppendKind::Cancel { .. } => life.cancel().ok(),
        AppendKind::Edit { .. } => (run.head.status() == RunStatus::Parked).then_some(life),
        AppendKind::Redrive => life.redrive().ok(),
        AppendKind::Migrate { from, .. } => {
            (waits && run.head.fingerprint.as_ref() == Some(from)).then_some(life)
        }
    }
}

impl ModelRun {
    /// Opens questions, or shows open ones anew.
    pub(super) fn show(&mut self, shown: &[OpenedInterrupt]) {
        for anew in shown {
            match self.open.iter_mut().find(|open| open.interrupt == anew.interrupt) {
                Some(open) => open.clone_from(anew),
                None => self.open.push(anew.clone()),
            }
        }
    }

    pub(super) fn append(&mut self, records: &[Vec<u8>], hash: &ChainHash) {
        self.journal.extend(records.iter().cloned());
        self.head.seq += records.len() as u64;
        self.head.hash = hash.clone();
        self.head.tail_bytes += records.iter().map(Vec::len).sum::<usize>() as u64;
    }
}
