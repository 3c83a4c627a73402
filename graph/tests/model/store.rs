//! What the store has of one run, and its operations. Every move goes through [`Life`].

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use holdpoint_graph::{LeaseTerm, Life, Pair, RunStatus, WorkerId};

use super::journal::{Address, Finish, Job, Key, Opening, Position, Record, Ticket, Write};
use super::rules::{Guard, Rules};

/// How many writes the store remembers; few, so that some are forgotten within the bounds.
const WRITES_KEPT: usize = 2;
/// The store's time.
const NOW_MS: i64 = 0;
/// A time to come.
pub(crate) const LATER_MS: i64 = 1;
/// Nothing depends on who a worker is, only on its pair.
static WORKER: LazyLock<WorkerId> = LazyLock::new(|| WorkerId::new("w").expect("it is an id"));

/// The state of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) Life);

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.status().hash(state);
        match &self.0 {
            Life::Scheduled { until_ms } => until_ms.hash(state),
            Life::Running { lease } => (lease.pair.epoch, &lease.pair.nonce).hash(state),
            Life::Parked { wake_at_ms } => wake_at_ms.hash(state),
            Life::Queued | Life::Completed | Life::Failed { .. } | Life::Cancelled => {}
        }
    }
}

/// The run as the store has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) life: Stored,
    pub(crate) epoch: u8,
    pub(crate) journal: Vec<Record>,
    /// Answers that wait, by key: the signal.
    pub(crate) inbox: Vec<(Key, u8)>,
    /// The wish to cancel.
    pub(crate) wish: bool,
    pub(crate) lost_in_row: u8,
    pub(crate) lost_in_life: u8,
    writes: VecDeque<Write>,
}

/// The reply to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It was taken, now or before; the run's state now.
    Done { status: RunStatus, is_repeat: bool },
    /// The pair is not the newest.
    Fenced,
    /// The journal is longer than the owner knows.
    Moved,
    /// The run is to be cancelled.
    Wished,
}

/// The reply to a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It waits for an open question.
    Delivered(Opening),
    /// It waits for a gate's next opening.
    Kept,
    /// It was sent before, and is known.
    Known,
    /// It is refused.
    Refused,
}

/// The reply to a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelReply {
    /// The run is cancelled, or will be by its owner.
    Taken,
    /// The journal is longer than the caller knows.
    Moved,
    /// The run ended otherwise.
    Refused,
}

impl Store {
    /// A run that was just enqueued.
    pub(crate) fn new() -> Self {
        Self {
            life: Stored(Life::Queued),
            epoch: 0,
            journal: Vec::new(),
            inbox: Vec::new(),
            wish: false,
            lost_in_row: 0,
            lost_in_life: 0,
            writes: VecDeque::new(),
        }
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.life.0.status()
    }

    pub(crate) fn position(&self) -> Position {
        Position::of(&self.journal)
    }

    /// The length of the journal.
    pub(crate) fn seq(&self) -> u8 {
        u8::try_from(self.journal.len()).expect("journals are short here")
    }

    /// The answer that waits for an open question.
    pub(crate) fn waiting_for(&self, open: Opening) -> Option<(Key, u8)> {
        let by = |key: Key| self.inbox.iter().find(|(at, _)| *at == key).copied();
        by(Key::Opening(open.number)).or_else(|| by(Key::Gate(open.gate)))
    }

    /// Whether the store knows that it took the write.
    pub(crate) fn remembers(&self, write: &Write) -> bool {
        self.writes.contains(write)
    }

    /// The pair of the lease.
    pub(crate) fn newest(&self) -> Option<&Pair> {
        match &self.life.0 {
            Life::Running { lease } => Some(&lease.pair),
            Life::Scheduled { .. }
            | Life::Queued
            | Life::Parked { .. }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => None,
        }
    }

    /// The pair that a call is checked with: its own, or any that fits where the guard is missing.
    fn pair(&self, ticket: Ticket, is_fenced: bool) -> Pair {
        let own = ticket.pair();
        if is_fenced { own } else { self.newest().cloned().unwrap_or(own) }
    }

    /// A worker takes the run.
    pub(crate) fn claim(&mut self, grant: u8, rules: Rules) -> Option<Ticket> {
        let is_fresh = rules.keep(Guard::FreshPair);
        let epoch = if is_fresh { self.epoch + 1 } else { 1 };
        let nonce = if is_fresh && rules.keep(Guard::Nonce) { grant } else { 0 };
        let ticket = Ticket { grant, epoch, nonce };
        let lease =
            LeaseTerm { pair: ticket.pair(), worker: WORKER.clone(), deadline_ms: LATER_MS };
        self.life.0 = self.life.0.clone().claim(lease).ok()?;
        self.epoch = epoch;
        self.lost_in_row += 1;
        self.lost_in_life += 1;
        Some(ticket)
    }

    /// The owner keeps the run: whether it is to be cancelled. None: it is not the owner.
    pub(crate) fn renew(&mut self, ticket: Ticket, rules: Rules) -> Option<bool> {
        let pair = self.pair(ticket, rules.keep(Guard::RenewFencing));
        self.life.0 = self.life.0.clone().renew(&pair, LATER_MS).ok()?;
        Some(self.wish)
    }

    /// The owner hands the run back.
    pub(crate) fn release(&mut self, ticket: Ticket, rules: Rules) -> bool {
        let pair = self.pair(ticket, rules.keep(Guard::ReleaseFencing));
        let Ok(life) = self.life.0.clone().release(&pair) else { return false };
        self.life.0 = life;
        if rules.keep(Guard::ReleaseCountsBack) {
            self.lost_in_row = self.lost_in_row.saturating_sub(1);
            self.lost_in_life = self.lost_in_life.saturating_sub(1);
        }
        true
    }

    /// The owner is lost; the first time in a row the run is claimable at once.
    pub(crate) fn lose(&mut self, rules: Rules) -> Option<()> {
        let until_ms = if self.lost_in_row < 2 { NOW_MS } else { LATER_MS };
        self.life.0 = self.life.0.clone().lose(until_ms, NOW_MS).ok()?;
        self.wish &= rules.keep(Guard::WishOutlivesOwner);
        Some(())
    }

    /// A failover forgets the last claim, after which nothing was written.
    pub(crate) fn forget_claim(&mut self) {
        self.life.0 = Life::Queued;
        self.epoch -= 1;
        self.lost_in_row -= 1;
        self.lost_in_life -= 1;
    }

    /// A timer of the run has come.
    pub(crate) fn fire(&mut self) -> Option<()> {
        self.life.0 = self.life.0.clone().fire(LATER_MS).ok()?;
        Some(())
    }

    /// An owner's commit.
    pub(crate) fn commit(&mut self, write: &Write, wake: Option<i64>, rules: Rules) -> Reply {
        if rules.keep(Guard::RequestIds) && self.remembers(write) {
            return Reply::Done { status: self.status(), is_repeat: true };
        }
        if let Some(reply) = self.refusal(write, rules) {
            return reply;
        }
        self.writes.push_back(*write);
        if self.writes.len() > WRITES_KEPT {
            self.writes.pop_front();
        }
        self.journal.push(write.job.record());
        if let Job::Answer { key, .. } = write.job
            && rules.keep(Guard::AnswerConsumed)
        {
            self.inbox.retain(|(at, _)| *at != key);
        }
        if write.job.is_progress() && rules.keep(Guard::ProgressCountsBack) {
            self.lost_in_row = 1;
        }
        self.dispose(write, wake, rules);
        Reply::Done { status: self.status(), is_repeat: false }
    }

    fn refusal(&self, write: &Write, rules: Rules) -> Option<Reply> {
        let is_over = self.status().is_terminal();
        let is_park = write.job.is_park();
        let guard = if is_park { Guard::ParkFencing } else { Guard::CommitFencing };
        let is_end = matches!(write.job, Job::End(_));
        if is_over && is_end && !rules.keep(Guard::FirstEndStands) {
            return None;
        }
        let pair = self.pair(write.ticket, rules.keep(guard));
        let may_park = is_park && !is_over && !rules.keep(Guard::ParkFencing);
        if self.life.0.clone().renew(&pair, LATER_MS).is_err() && !may_park {
            return Some(Reply::Fenced);
        }
        if write.from != self.seq() && rules.keep(Guard::CommitPosition) {
            return Some(Reply::Moved);
        }
        let is_refused = self.wish && write.job != Job::End(Finish::Cancelled);
        (is_refused && rules.keep(Guard::WishAtCommit)).then_some(Reply::Wished)
    }

    /// Moves the run as the commit says.
    fn dispose(&mut self, write: &Write, wake_at_ms: Option<i64>, rules: Rules) {
        let life = self.life.0.clone();
        // The pair was checked; where a guard is missing, any that fits will do.
        let pair = self.newest().cloned().unwrap_or_else(|| write.ticket.pair());
        let open = self.position().open;
        let is_answered = open.is_some_and(|open| self.waiting_for(open).is_some());
        let goes_on = is_answered && rules.keep(Guard::ParkReadsInbox);
        let moved = match write.job {
            Job::End(finish) => life.clone().finish(&pair, finish.end()),
            Job::Open { .. } | Job::Park if !goes_on => life.clone().park(&pair, wake_at_ms),
            Job::Open { .. }
            | Job::Park
            | Job::Work { .. }
            | Job::Pass { .. }
            | Job::Answer { .. } => life.clone().renew(&pair, LATER_MS),
        };
        let stays = moved.as_ref().is_ok_and(|life| life.status() == RunStatus::Running);
        self.life.0 = moved.unwrap_or_else(|_| forced(write.job, life));
        let counts_back = rules.keep(Guard::ParkCountsBack) || !write.job.is_park();
        if !stays && counts_back {
            self.lost_in_row = 0;
            self.lost_in_life = self.lost_in_life.saturating_sub(1);
        }
        if self.status().is_terminal() {
            self.inbox.clear();
        }
    }

    /// Stores an answer.
    pub(crate) fn signal(&mut self, signal: u8, address: Address, rules: Rules) -> Told {
        let Ok(woken) = self.life.0.clone().signal() else { return Told::Refused };
        if rules.keep(Guard::SignalOnce) && self.has(signal) {
            return Told::Known;
        }
        let open = self.position().open;
        let question = match (address, open) {
            (Address::Opening(number), Some(open)) if open.number == number => open,
            (Address::Opening(_), Some(open)) if !rules.keep(Guard::OwnOpening) => open,
            (Address::Opening(_), _) => return Told::Refused,
            (Address::Gate(gate), Some(open)) if open.gate == gate => open,
            (Address::Gate(gate), _) => return self.keep_early(gate, signal, rules),
        };
        let key = Key::Opening(question.number);
        let known = self
            .waiting_for(question)
            .filter(|(at, _)| rules.keep(Guard::EarlyAnswerCounts) || *at == key);
        match known {
            Some((_, known)) if known == signal => return Told::Known,
            Some(_) if rules.keep(Guard::FirstAnswerStands) => return Told::Refused,
            Some(_) | None => self.keep(key, signal, rules),
        }
        if rules.keep(Guard::SignalWakes) {
            self.life.0 = woken;
        }
        Told::Delivered(question)
    }

    /// Keeps an answer for a gate that does not ask yet.
    fn keep_early(&mut self, gate: char, signal: u8, rules: Rules) -> Told {
        let key = Key::Gate(gate);
        match self.inbox.iter().find(|(at, _)| *at == key) {
            Some((_, known)) if *known == signal => Told::Known,
            Some(_) if rules.keep(Guard::FirstAnswerStands) => Told::Refused,
            Some(_) | None => {
                self.keep(key, signal, rules);
                Told::Kept
            }
        }
    }

    fn keep(&mut self, key: Key, signal: u8, rules: Rules) {
        if self.status() == RunStatus::Running && !rules.keep(Guard::KeptWhileRunning) {
            return;
        }
        self.inbox.retain(|(at, _)| *at != key);
        self.inbox.push((key, signal));
        self.inbox.sort_unstable();
    }

    /// Whether the signal waits or was taken.
    pub(crate) fn has(&self, signal: u8) -> bool {
        self.inbox.iter().any(|(_, waits)| *waits == signal) || self.has_taken(signal)
    }

    /// Whether an answer of the journal came with the signal.
    pub(crate) fn has_taken(&self, signal: u8) -> bool {
        let is_it =
            |record: &Record| matches!(record, Record::Answered { signal: s, .. } if *s == signal);
        self.journal.iter().any(is_it)
    }

    /// Cancels the run; `from` is the length of the journal that the caller knows.
    pub(crate) fn cancel(&mut self, from: u8, rules: Rules) -> CancelReply {
        let life = match self.life.0.clone().cancel() {
            Ok(life) => life,
            Err(_) if rules.keep(Guard::CancelFindsEnd) => return CancelReply::Refused,
            Err(_) => Life::Cancelled,
        };
        if life.status() == RunStatus::Running {
            self.wish = true;
            return CancelReply::Taken;
        }
        if from != self.seq() && rules.keep(Guard::CancelPosition) {
            return CancelReply::Moved;
        }
        self.life.0 = life;
        self.journal.push(Record::Ended(RunStatus::Cancelled));
        self.inbox.clear();
        CancelReply::Taken
    }

    /// An operator sends a failed run on.
    pub(crate) fn redrive(&mut self, rules: Rules) -> Option<()> {
        self.life.0 = self.life.0.clone().redrive().ok()?;
        self.journal.push(Record::Redriven);
        if rules.keep(Guard::RedriveCountsBack) {
            self.lost_in_row = 0;
            self.lost_in_life = 0;
        }
        Some(())
    }
}

/// Where a commit puts a run that no guard kept it from.
fn forced(job: Job, life: Life) -> Life {
    match job {
        Job::End(Finish::Completed) => Life::Completed,
        Job::End(Finish::Cancelled) => Life::Cancelled,
        Job::Open { .. } | Job::Park => Life::Parked { wake_at_ms: None },
        Job::End(Finish::CrashLoop) | Job::Work { .. } | Job::Pass { .. } | Job::Answer { .. } => {
            life
        }
    }
}
