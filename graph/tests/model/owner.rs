//! What a worker does with the run: it claims, starts nodes, commits, renews and releases.

use holdpoint_graph::RunStatus;

use super::journal::{Finish, Job, Node, Position, Ticket, Write};
use super::rules::Guard;
use super::store::{LATER_MS, Reply, Store};
use super::witness::Fault;
use super::world::{Checked, Fate, Owner, State, Worker};

impl Checked {
    pub(crate) fn claim(&self, state: &mut State, fate: Fate) -> Option<()> {
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

    pub(crate) fn claim_again(&self, state: &mut State, at: usize) {
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

    pub(crate) fn begin(&self, state: &mut State, at: usize) -> Option<()> {
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

    pub(crate) fn commit(&self, state: &mut State, at: usize, fate: Fate) -> Option<()> {
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
    pub(crate) fn deliver(&self, state: &mut State, write: &Write) -> Reply {
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

    pub(crate) fn renew(&self, state: &mut State, at: usize) -> Option<()> {
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

    pub(crate) fn release(&self, state: &mut State, at: usize) -> Option<()> {
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
}
