//! What must always hold, and what must be reachable for that to mean anything.

use holdpoint_graph::RunStatus;
use stateright::Property;

use super::journal::{Node, Position, Record};
use super::witness::Fault;
use super::world::{Canceller, Checked, State};

/// The run completed.
pub(crate) const FINISHED: &str = "a run finishes";
/// The run completed after two lost workers.
pub(crate) const FINISHED_AFTER_LOSSES: &str = "a run finishes after two lost workers";
/// The run failed as a crash loop.
pub(crate) const CRASH_LOOP: &str = "a crash loop is given up";
/// The run completed after it had been given up.
pub(crate) const FINISHED_AFTER_REDRIVE: &str = "a run that was given up is sent on and finishes";
/// All nodes had ended, and the cancel came first.
pub(crate) const CANCEL_WINS: &str = "a cancel beats the finish";
/// The cancel came too late.
pub(crate) const FINISH_WINS: &str = "the finish beats a cancel";
/// The answer was there before the run parked.
pub(crate) const TAKEN_AT_PARK: &str = "a park takes its answer from the inbox";
/// A call was made twice.
pub(crate) const REPEAT_KNOWN: &str = "a repeat is recognised";

/// All properties.
pub(crate) fn all() -> Vec<Property<Checked>> {
    let mut all = faults();
    all.extend(states());
    all.extend(reachable());
    all
}

fn faults() -> Vec<Property<Checked>> {
    fn none(state: &State, fault: Fault) -> bool {
        state.witness.fault != Some(fault)
    }
    vec![
        Property::always("only the newest owner writes", |_, state: &State| {
            none(state, Fault::StaleWrite)
        }),
        Property::always("no owner starts a node that has ended", |_, state: &State| {
            none(state, Fault::StartedAgain)
        }),
        Property::always("after an acknowledged cancel no node starts", |_, state: &State| {
            none(state, Fault::StartedAfterCancel)
        }),
        Property::always("after too many lost workers no node starts", |_, state: &State| {
            none(state, Fault::StartedPastCap)
        }),
        Property::always("only lost workers make a crash loop", |_, state: &State| {
            none(state, Fault::GivenUpEarly)
        }),
        Property::always("a repeat is answered as the first call was", |_, state: &State| {
            none(state, Fault::RepeatRefused)
        }),
        Property::always("a record follows what its writer knew", |_, state: &State| {
            none(state, Fault::Gap)
        }),
    ]
}

fn states() -> Vec<Property<Checked>> {
    vec![
        Property::always("each node ends once and in order", |_, state: &State| {
            let nodes = state.store.journal.iter().filter_map(|record| match record {
                Record::Done { node } | Record::Answered { node, .. } => Some(*node),
                Record::Opened { .. } | Record::Rested | Record::Ended(_) | Record::Redriven => {
                    None
                }
            });
            nodes.eq(0..state.store.position().node)
        }),
        Property::always("a gate is passed with an answer to its very opening", gates_are_answered),
        Property::always("a signal answers once, and its own opening", signals_answer_their_own),
        Property::always("an acknowledged signal is not lost", signals_are_not_lost),
        Property::always("no run rests while its answer waits", |_, state: &State| {
            let open = state.store.position().open;
            let is_answered = open.is_some_and(|open| state.store.waiting_for(open).is_some());
            state.store.status() != RunStatus::Parked || !is_answered
        }),
        Property::always("the first end stands", |_, state: &State| {
            state.witness.ended.is_none_or(|ended| ended == state.store.status())
        }),
        Property::always("an acknowledged cancel ends as cancelled", |_, state: &State| {
            let is_taken = state.witness.cancelled.is_some() && state.store.status().is_terminal();
            !is_taken || state.store.status() == RunStatus::Cancelled
        }),
        Property::always("a completed run has done all its nodes", |model, state: &State| {
            let is_done = usize::from(state.store.position().node) == model.world.plan.len();
            state.store.status() != RunStatus::Completed || is_done
        }),
    ]
}

fn reachable() -> Vec<Property<Checked>> {
    fn is(state: &State, status: RunStatus) -> bool {
        state.store.status() == status
    }
    vec![
        Property::sometimes(FINISHED, |_, state: &State| is(state, RunStatus::Completed)),
        Property::sometimes(FINISHED_AFTER_LOSSES, |_, state: &State| {
            is(state, RunStatus::Completed) && state.witness.lost_in_life == 2
        }),
        Property::sometimes(CRASH_LOOP, |_, state: &State| is(state, RunStatus::Failed)),
        Property::sometimes(FINISHED_AFTER_REDRIVE, |_, state: &State| {
            is(state, RunStatus::Completed) && state.store.journal.contains(&Record::Redriven)
        }),
        Property::sometimes(CANCEL_WINS, |model, state: &State| {
            let node = usize::from(state.store.position().node);
            is(state, RunStatus::Cancelled) && node == model.world.plan.len()
        }),
        Property::sometimes(FINISH_WINS, |_, state: &State| {
            is(state, RunStatus::Completed) && state.canceller == Canceller::Refused
        }),
        Property::sometimes(TAKEN_AT_PARK, |_, state: &State| state.witness.took_at_park),
        Property::sometimes(REPEAT_KNOWN, |_, state: &State| state.witness.knew_repeat),
    ]
}

/// Every gate that is behind the run was answered while that very opening was open, by a signal
/// that was acknowledged; no other node was.
fn gates_are_answered(model: &Checked, state: &State) -> bool {
    let mut position = Position::default();
    for record in &state.store.journal {
        let is_gate =
            |node: u8| matches!(model.world.plan.get(usize::from(node)), Some(Node::Gate(_)));
        let fits = match *record {
            Record::Done { node } => !is_gate(node),
            Record::Answered { node, opening, signal } => {
                let open = position.open.is_some_and(|open| open.number == opening);
                let target = state.witness.targets.get(usize::from(signal));
                is_gate(node) && open && target.is_some_and(Option::is_some)
            }
            Record::Opened { .. } | Record::Rested | Record::Ended(_) | Record::Redriven => true,
        };
        if !fits {
            return false;
        }
        position.apply(*record);
    }
    true
}

fn signals_answer_their_own(_: &Checked, state: &State) -> bool {
    let journal = &state.store.journal;
    let mut taken = Vec::new();
    for record in journal {
        let Record::Answered { opening, signal, .. } = *record else { continue };
        if taken.contains(&signal) || state.witness.own_opening(signal, journal) != Some(opening) {
            return false;
        }
        taken.push(signal);
    }
    true
}

/// It was taken or it waits. A run that completed owes nothing to a gate it never came to.
fn signals_are_not_lost(_: &Checked, state: &State) -> bool {
    let (store, witness) = (&state.store, &state.witness);
    (0..).zip(&witness.targets).filter(|(_, target)| target.is_some()).all(|(signal, _)| {
        let came = witness.own_opening(signal, &store.journal).is_some();
        let is_owed = came || store.status() != RunStatus::Completed;
        !is_owed || store.has(signal)
    })
}
