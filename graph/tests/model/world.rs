//! The run, its workers, the people around it, and everything that may happen next.

use holdpoint_graph::{Life, RunStatus};
use stateright::Model;

use super::journal::{Address, Finish, Job, Node, Position, Ticket, Write};
use super::rules::{Guard, Rules};
use super::store::{CancelReply, LATER_MS, Reply, Store};
use super::witness::{Fault, Witness};

/// What may happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Budget {
    /// Workers that die and begin anew.
    pub(crate) crashes: u8,
    /// Leases that end, whether their worker lives or not.
    pub(crate) losses: u8,
    /// Replies that do not arrive: to a claim or to a commit.
    pub(crate) lost_replies: u8,
    /// Commits of which the network delivers a copy at some later time.
    pub(crate) copies: u8,
    /// Runs that are handed back.
    pub(crate) releases: u8,
    /// Parked runs that wake by their timer.
    pub(crate) timers: u8,
    /// Failovers that forget the last claim.
    pub(crate) failovers: u8,
    pub(crate) cancels: u8,
    pub(crate) redrives: u8,
}

/// A bounded world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) workers: usize,
    pub(crate) plan: &'static [Node],
    pub(crate) signals: &'static [Address],
    /// How often each signal is sent.
    pub(crate) sends: u8,
    pub(crate) budget: Budget,
    /// How many workers may be lost in a row.
    pub(crate) row_max: u8,
    /// How many workers may be lost in the run's life.
    pub(crate) life_max: u8,
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Worker {
    Idle,
    /// Its claim was granted and the reply lost.
    Asking(Ticket),
    /// It takes itself for the owner.
    Owner(Owner),
}

/// What an owner is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) write: Write,
    /// The node has started.
    has_begun: bool,
    /// The commit was sent, and there was no reply.
    is_repeat: bool,
}

/// The one who cancels: reads the run first, then appends behind what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Canceller {
    Waits,
    Read(u8),
    Acknowledged,
    Refused,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) store: Store,
    /// Sorted, since they are alike.
    pub(crate) workers: Vec<Worker>,
    pub(crate) canceller: Canceller,
    /// A copy of a commit, still in the network.
    copy: Option<Write>,
    /// How often each signal was sent.
    sent: Vec<u8>,
    /// What is left of it.
    budget: Budget,
    pub(crate) witness: Witness,
}

/// What becomes of a commit on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    ReplyLost,
    Copied,
}

/// A step of the world. Workers are named by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Claim(Fate),
    ClaimAgain(usize),
    Begin(usize),
    Commit(usize, Fate),
    CopyArrives,
    Renew(usize),
    Release(usize),
    Crash(usize),
    Lose,
    Fire,
    Failover,
    Signal(u8),
    ReadToCancel,
    Cancel,
    Redrive,
}

/// A world with or without one of its guards.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) world: &'static World,
    pub(crate) rules: Rules,
}

impl Model for Checked {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let world = self.world;
        vec![State {
            store: Store::new(),
            workers: vec![Worker::Idle; world.workers],
            canceller: Canceller::Waits,
            copy: None,
            sent: vec![0; world.signals.len()],
            budget: world.budget,
            witness: Witness::new(world.signals.len()),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.witness.fault.is_some() {
            return;
        }
        let budget = &state.budget;
        for (at, worker) in state.workers.iter().enumerate() {
            match worker {
                Worker::Idle => continue,
                Worker::Asking(_) => actions.push(Action::ClaimAgain(at)),
                Worker::Owner(owner) => owner.actions(at, state, actions),
            }
            if budget.crashes > 0 {
                actions.push(Action::Crash(at));
            }
        }
        self.actions_of_store(state, actions);
        self.actions_of_people(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.act(&mut state, action)?;
        state.witness.looks_at(&state.store);
        state.workers.sort_unstable();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        super::properties::all()
    }
}

impl Owner {
    fn new(ticket: Ticket, from: u8, job: Job) -> Self {
        Self { write: Write { ticket, from, job }, has_begun: false, is_repeat: false }
    }

    fn actions(&self, at: usize, state: &State, actions: &mut Vec<Action>) {
        let budget = &state.budget;
        if matches!(self.write.job, Job::Work { .. }) && !self.has_begun {
            actions.push(Action::Begin(at));
        } else {
            actions.push(Action::Commit(at, Fate::Answered));
            if budget.lost_replies > 0 {
                actions.push(Action::Commit(at, Fate::ReplyLost));
            }
            if budget.copies > 0 && state.copy.is_none() {
                actions.push(Action::Commit(at, Fate::Copied));
            }
        }
        if !self.is_repeat {
            actions.push(Action::Renew(at));
            if budget.releases > 0 && !self.has_begun {
                actions.push(Action::Release(at));
            }
        }
    }
}

impl Checked {
    fn actions_of_store(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = &state.budget;
        match &state.store.life.0 {
            Life::Queued if state.workers.contains(&Worker::Idle) => {
                actions.push(Action::Claim(Fate::Answered));
                if budget.lost_replies > 0 {
                    actions.push(Action::Claim(Fate::ReplyLost));
                }
            }
            Life::Running { .. } => {
                if budget.losses > 0 {
                    actions.push(Action::Lose);
                }
                if budget.failovers > 0 && !state.witness.has_moved {
                    actions.push(Action::Failover);
                }
            }
            Life::Scheduled { .. } | Life::Parked { wake_at_ms: Some(_) } => {
                actions.push(Action::Fire);
            }
            Life::Failed { .. } if budget.redrives > 0 => actions.push(Action::Redrive),
            Life::Queued
            | Life::Parked { wake_at_ms: None }
            | Life::Completed
            | Life::Failed { .. }
            | Life::Cancelled => {}
        }
        if state.copy.is_some() {
            actions.push(Action::CopyArrives);
        }
    }

    fn actions_of_people(&self, state: &State, actions: &mut Vec<Action>) {
        for (signal, sent) in (0..).zip(&state.sent) {
            if *sent < self.world.sends {
                actions.push(Action::Signal(signal));
            }
        }
        match state.canceller {
            Canceller::Waits if state.budget.cancels > 0 => actions.push(Action::ReadToCancel),
            Canceller::Read(_) => actions.push(Action::Cancel),
            Canceller::Waits | Canceller::Acknowledged | Canceller::Refused => {}
        }
    }

    fn act(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Claim(fate) => self.claim(state, fate)?,
            Action::ClaimAgain(at) => self.claim_again(state, at),
            Action::Begin(at) => self.begin(state, at)?,
            Action::Commit(at, fate) => self.commit(state, at, fate)?,
            Action::CopyArrives => {
                let write = state.copy.take()?;
                self.deliver(state, &write);
            }
            Action::Renew(at) => self.renew(state, at)?,
            Action::Release(at) => self.release(state, at)?,
            Action::Crash(at) => {
                state.workers[at] = Worker::Idle;
                state.budget.crashes -= 1;
            }
            Action::Lose => {
                state.store.lose(self.rules)?;
                state.witness.lost();
                state.budget.losses -= 1;
            }
            Action::Fire => {
                let is_parked = state.store.status() == RunStatus::Parked;
                state.store.fire()?;
                state.budget.timers -= u8::from(is_parked);
            }
            Action::Failover => {
                state.store.forget_claim();
                state.witness.owner = None;
                state.budget.failovers -= 1;
            }
            Action::Signal(signal) => self.signal(state, signal)?,
            Action::ReadToCancel => {
                state.canceller = Canceller::Read(state.store.seq());
                state.budget.cancels -= 1;
            }
            Action::Cancel => self.cancel(state)?,
            Action::Redrive => {
                state.store.redrive(self.rules)?;
                state.witness.redriven();
                state.budget.redrives -= 1;
            }
        }
        Some(())
    }

    fn claim(&self, state: &mut State, fate: Fate) -> Option<()> {
        let at = state.workers.iter().position(|worker| *worker == Worker::Idle)?;
        let ticket = state.store.claim(state.witness.grants, self.rules)?;
        state.witness.granted();
        state.workers[at] = match fate {
            Fate::ReplyLost => {
                state.budget.lost_replies -= 1;
                Worker::Asking(ticket)
            }
            Fate::Answered | Fate::Copied => self.owner(state, ticket),
        };
        Some(())
    }

    fn claim_again(&self, state: &mut State, at: usize) {
        let Worker::Asking(ticket) = state.workers[at] else { return };
        let holds = state.store.newest() == Some(&ticket.pair());
        if holds && self.rules.keep(Guard::ClaimRepeats) {
            state.witness.knew_repeat = true;
            state.workers[at] = self.owner(state, ticket);
        } else {
            state.witness.blame(Fault::RepeatRefused, state.witness.is_owner(ticket));
            state.workers[at] = Worker::Idle;
        }
    }

    /// A worker that has just got the run, and looks whether it must end.
    fn owner(&self, state: &State, ticket: Ticket) -> Worker {
        let (store, rules) = (&state.store, self.rules);
        let lost_in_row = store.lost_in_row.saturating_sub(1);
        let lost_in_life = store.lost_in_life.saturating_sub(1);
        let is_loop = (lost_in_row >= self.world.row_max && rules.keep(Guard::RowCap))
            || (lost_in_life >= self.world.life_max && rules.keep(Guard::LifeCap));
        let job = if store.wish && rules.keep(Guard::WishAtClaim) {
            Job::End(Finish::Cancelled)
        } else if is_loop {
            Job::End(Finish::CrashLoop)
        } else {
            self.job(store, store.seq(), true)
        };
        Worker::Owner(Owner::new(ticket, store.seq(), job))
    }

    /// What an owner does next that knows the journal up to `from` and has just seen the inbox.
    fn job(&self, store: &Store, from: u8, is_claim: bool) -> Job {
        let known = store.journal.get(..usize::from(from)).unwrap_or(&store.journal);
        let Position { node, open, .. } = Position::of(known);
        let answer = open.and_then(|open| Some((open.number, store.waiting_for(open)?)));
        let Some(Node::Gate(gate)) = self.world.plan.get(usize::from(node)).copied() else {
            let is_over = usize::from(node) >= self.world.plan.len();
            return if is_over { Job::End(Finish::Completed) } else { Job::Work { node } };
        };
        match (open, answer) {
            (None, _) => Job::Open { gate },
            (Some(_), Some((opening, (key, signal)))) => Job::Answer { node, opening, key, signal },
            (Some(_), None) if is_claim && !self.rules.keep(Guard::AnswerRead) => {
                Job::Pass { node }
            }
            (Some(_), None) => Job::Park,
        }
    }

    fn begin(&self, state: &mut State, at: usize) -> Option<()> {
        let Worker::Owner(owner) = &mut state.workers[at] else { return None };
        owner.has_begun = true;
        let Write { ticket, from, job } = owner.write;
        let Job::Work { node } = job else { return None };
        let witness = &mut state.witness;
        let is_spent = witness.lost_in_row >= self.world.row_max
            || witness.lost_in_life >= self.world.life_max;
        witness.blame(Fault::StartedPastCap, is_spent && witness.is_owner(ticket));
        witness.starts(ticket, node, from, &state.store);
        Some(())
    }

    fn commit(&self, state: &mut State, at: usize, fate: Fate) -> Option<()> {
        let Worker::Owner(owner) = state.workers[at] else { return None };
        let reply = self.deliver(state, &owner.write);
        match fate {
            Fate::Answered => {}
            Fate::ReplyLost => {
                state.budget.lost_replies -= 1;
                state.workers[at] = Worker::Owner(Owner { is_repeat: true, ..owner });
                return Some(());
            }
            Fate::Copied => {
                state.budget.copies -= 1;
                state.copy = Some(owner.write);
            }
        }
        let Write { ticket, from, .. } = owner.write;
        let go_on = |from, job| Worker::Owner(Owner::new(ticket, from, job));
        state.workers[at] = match reply {
            Reply::Done { status: RunStatus::Running, .. } => {
                go_on(from + 1, self.job(&state.store, from + 1, false))
            }
            Reply::Wished => go_on(from, Job::End(Finish::Cancelled)),
            Reply::Done { .. } | Reply::Fenced | Reply::Moved => Worker::Idle,
        };
        Some(())
    }

    /// A commit arrives at the store.
    fn deliver(&self, state: &mut State, write: &Write) -> Reply {
        let State { store, witness, budget, .. } = state;
        let was_taken = store.remembers(write);
        let wake_at_ms = (budget.timers > 0).then_some(LATER_MS);
        let is_early =
            witness.lost_in_row < self.world.row_max && witness.lost_in_life < self.world.life_max;
        let reply = store.commit(write, wake_at_ms, self.rules);
        match reply {
            Reply::Done { is_repeat: true, .. } => witness.knew_repeat = true,
            Reply::Done { is_repeat: false, .. } => {
                let is_loop = write.job == Job::End(Finish::CrashLoop);
                witness.blame(Fault::GivenUpEarly, is_loop && is_early);
                witness.committed(write.ticket, write.job, store);
            }
            Reply::Fenced | Reply::Moved | Reply::Wished => {
                witness.blame(Fault::RepeatRefused, was_taken);
            }
        }
        reply
    }

    fn renew(&self, state: &mut State, at: usize) -> Option<()> {
        let Worker::Owner(owner) = state.workers[at] else { return None };
        let Write { ticket, from, .. } = owner.write;
        state.workers[at] = match state.store.renew(ticket, self.rules) {
            None => Worker::Idle,
            Some(wish) => {
                state.witness.blame(Fault::StaleWrite, !state.witness.is_owner(ticket));
                let cancel = Owner::new(ticket, from, Job::End(Finish::Cancelled));
                Worker::Owner(if wish { cancel } else { owner })
            }
        };
        Some(())
    }

    fn release(&self, state: &mut State, at: usize) -> Option<()> {
        let Worker::Owner(owner) = state.workers[at] else { return None };
        let ticket = owner.write.ticket;
        if state.store.release(ticket, self.rules) {
            state.witness.blame(Fault::StaleWrite, !state.witness.is_owner(ticket));
            state.witness.owner = None;
        }
        state.workers[at] = Worker::Idle;
        state.budget.releases -= 1;
        Some(())
    }

    fn signal(&self, state: &mut State, signal: u8) -> Option<()> {
        let address = *self.world.signals.get(usize::from(signal))?;
        *state.sent.get_mut(usize::from(signal))? += 1;
        let told = state.store.signal(signal, address, self.rules);
        state.witness.told(signal, address, told, &state.store);
        Some(())
    }

    fn cancel(&self, state: &mut State) -> Option<()> {
        let Canceller::Read(from) = state.canceller else { return None };
        let records = state.store.seq();
        state.canceller = match state.store.cancel(from, self.rules) {
            CancelReply::Moved => Canceller::Read(records),
            CancelReply::Refused => Canceller::Refused,
            CancelReply::Taken => {
                let has_appended = state.store.seq() > records;
                state.witness.blame(Fault::Gap, has_appended && from != records);
                state.witness.cancelled = Some((records, state.witness.grants));
                state.witness.has_moved = true;
                Canceller::Acknowledged
            }
        };
        Some(())
    }
}
