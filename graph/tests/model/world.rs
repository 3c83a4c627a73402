//! The run, its workers, the people around it, and everything that may happen next.

use holdpoint_graph::{Life, RunStatus};
use stateright::Model;

use super::journal::{Address, Job, Node, Ticket, Write};
use super::rules::Rules;
use super::store::{CancelReply, Store};
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
    pub(crate) has_begun: bool,
    /// The commit was sent, and there was no reply.
    pub(crate) is_repeat: bool,
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
    pub(crate) copy: Option<Write>,
    /// How often each signal was sent.
    sent: Vec<u8>,
    /// What is left of it.
    pub(crate) budget: Budget,
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
    pub(crate) fn new(ticket: Ticket, from: u8, job: Job) -> Self {
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
