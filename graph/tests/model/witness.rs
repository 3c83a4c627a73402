//! What an observer of the whole system knows and nobody in it does.
//!
//! The properties are about this and about the journal. It never decides what happens.

use holdpoint_graph::RunStatus;

use super::journal::{Address, Finish, Job, Record, Ticket};
use super::store::{Store, Told};

/// A promise that was broken by a move, as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// Somebody wrote who was not the newest owner.
    StaleWrite,
    /// The owner started a node whose end is in the journal.
    StartedAgain,
    /// A node started on leave that was given after the cancel was acknowledged.
    StartedAfterCancel,
    /// A node started though too many workers were lost with the run.
    StartedPastCap,
    /// The run was given up as a crash loop with fewer lost workers than that.
    GivenUpEarly,
    /// The repeat of a call that was taken was refused.
    RepeatRefused,
    /// A record does not follow the one that its writer knew as the last.
    Gap,
}

/// To which opening an acknowledged signal belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// To this one.
    Opening(u8),
    /// To the gate's first opening in the journal from here on.
    NextOf { gate: char, from: u8 },
}

/// The observer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Witness {
    /// The number of the next claim.
    pub(crate) grants: u8,
    /// The claim whose worker is the owner.
    pub(crate) owner: Option<u8>,
    /// Whether something was written since the last claim.
    pub(crate) has_moved: bool,
    /// Lost workers since the last progress, park or redrive.
    pub(crate) lost_in_row: u8,
    /// Lost workers since the last redrive.
    pub(crate) lost_in_life: u8,
    /// How the run ended first.
    pub(crate) ended: Option<RunStatus>,
    /// What was known when the cancel was acknowledged: records, and the next claim.
    pub(crate) cancelled: Option<(u8, u8)>,
    /// The acknowledged signals, by number.
    pub(crate) targets: Vec<Option<Target>>,
    /// A park took its answer from the inbox.
    pub(crate) took_at_park: bool,
    /// A repeat was recognised.
    pub(crate) knew_repeat: bool,
    pub(crate) fault: Option<Fault>,
}

impl Witness {
    pub(crate) fn new(signals: usize) -> Self {
        Self {
            grants: 0,
            owner: None,
            has_moved: false,
            lost_in_row: 0,
            lost_in_life: 0,
            ended: None,
            cancelled: None,
            targets: vec![None; signals],
            took_at_park: false,
            knew_repeat: false,
            fault: None,
        }
    }

    /// Notes a fault; the first one stands.
    pub(crate) fn blame(&mut self, fault: Fault, is_so: bool) {
        if is_so {
            self.fault = self.fault.or(Some(fault));
        }
    }

    pub(crate) fn is_owner(&self, ticket: Ticket) -> bool {
        self.owner == Some(ticket.grant)
    }

    /// A claim was granted.
    pub(crate) fn granted(&mut self) {
        self.owner = Some(self.grants);
        self.grants += 1;
        self.has_moved = false;
    }

    /// The owner was lost.
    pub(crate) fn lost(&mut self) {
        self.owner = None;
        self.lost_in_row += 1;
        self.lost_in_life += 1;
    }

    /// A node starts; `from` is as much of the journal as its owner knows.
    pub(crate) fn starts(&mut self, ticket: Ticket, node: u8, from: u8, store: &Store) {
        if !self.is_owner(ticket) {
            // A worker that was lost and does not know it: its commit will be refused.
            return;
        }
        let is_late = |(records, grant)| from > records || ticket.grant >= grant;
        self.blame(Fault::StartedAgain, node < store.position().node);
        self.blame(Fault::StartedAfterCancel, self.cancelled.is_some_and(is_late));
    }

    /// A commit was taken, not as a repeat.
    pub(crate) fn committed(&mut self, ticket: Ticket, job: Job, store: &Store) {
        self.blame(Fault::StaleWrite, !self.is_owner(ticket));
        self.has_moved = true;
        if job.is_progress() {
            self.lost_in_row = 0;
        }
        let is_running = store.status() == RunStatus::Running;
        self.took_at_park |= job.is_park() && is_running;
        if !is_running {
            self.owner = None;
        }
        if job.is_park() && !is_running {
            self.lost_in_row = 0;
        }
    }

    /// A signal was answered.
    pub(crate) fn told(&mut self, signal: u8, address: Address, told: Told, store: &Store) {
        let target = match (told, address) {
            // It is what the sender meant that counts, not what the store made of it.
            (Told::Delivered(_), Address::Opening(number)) => Target::Opening(number),
            (Told::Delivered(open), Address::Gate(_)) => Target::Opening(open.number),
            (Told::Kept, Address::Gate(gate)) => Target::NextOf { gate, from: store.seq() },
            (Told::Kept, Address::Opening(_)) | (Told::Known | Told::Refused, _) => return,
        };
        self.has_moved = true;
        let slot = self.targets.get_mut(usize::from(signal)).expect("every signal has a slot");
        *slot = slot.or(Some(target));
    }

    /// Looks at the state after a move: the first end is kept, and what an end other than
    /// completion left unanswered is no longer owed.
    pub(crate) fn looks_at(&mut self, store: &Store) {
        let status = store.status();
        if !status.is_terminal() || self.ended.is_some() {
            return;
        }
        self.ended = Some(status);
        self.owner = None;
        if status != Finish::Completed.status() {
            for (signal, target) in (0..).zip(&mut self.targets) {
                if !store.has_taken(signal) {
                    *target = None;
                }
            }
        }
    }

    /// A failed run was sent on.
    pub(crate) fn redriven(&mut self) {
        self.ended = None;
        self.lost_in_row = 0;
        self.lost_in_life = 0;
    }

    /// The opening that a signal belongs to, once it is there.
    pub(crate) fn own_opening(&self, signal: u8, journal: &[Record]) -> Option<u8> {
        match (*self.targets.get(usize::from(signal))?)? {
            Target::Opening(number) => Some(number),
            Target::NextOf { gate, from } => {
                let opened = journal.iter().enumerate().filter(|(_, record)| is_opening(record));
                let mut numbered = (0..).zip(opened);
                let is_it = |at: usize, record: &Record| {
                    at >= usize::from(from) && *record == Record::Opened { gate }
                };
                numbered.find(|(_, (at, record))| is_it(*at, record)).map(|(number, _)| number)
            }
        }
    }
}

fn is_opening(record: &Record) -> bool {
    matches!(record, Record::Opened { .. })
}
