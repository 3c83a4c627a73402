//! The words of the model: records, positions, addresses and writes.
//!
//! A position is the fold of a journal, as in the engine; nothing stores it.

use holdpoint_graph::{End, Pair, ReasonCode, RunStatus};

/// A node of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// It runs by itself.
    Work,
    /// It is passed with an answer.
    Gate(char),
}

/// A record of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Record {
    /// A node has ended.
    Done { node: u8 },
    /// A gate asks; openings are numbered by their order.
    Opened { gate: char },
    /// The opening was answered by a signal, which ends its node.
    Answered { node: u8, opening: u8, signal: u8 },
    /// The run parked once more at a question that is open.
    Rested,
    /// The run ended.
    Ended(RunStatus),
    /// A failed run was sent on.
    Redriven,
}

/// A question that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) number: u8,
    pub(crate) gate: char,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    /// The next node.
    pub(crate) node: u8,
    pub(crate) open: Option<Opening>,
    openings: u8,
}

impl Position {
    /// The fold of a journal.
    pub(crate) fn of(journal: &[Record]) -> Self {
        let mut position = Self::default();
        for record in journal {
            position.apply(*record);
        }
        position
    }

    /// One record more.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Done { .. } | Record::Answered { .. } => {
                self.node += 1;
                self.open = None;
            }
            Record::Opened { gate } => {
                self.open = Some(Opening { number: self.openings, gate });
                self.openings += 1;
            }
            Record::Ended(_) => self.open = None,
            Record::Rested | Record::Redriven => {}
        }
    }
}

/// Where a signal is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// To one opening, by its number.
    Opening(u8),
    /// To a gate, whether it asks already or not.
    Gate(char),
}

/// Under what an answer waits in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    Opening(u8),
    Gate(char),
}

/// What one claim gave its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket {
    /// The number of the claim; only the witness compares it.
    pub(crate) grant: u8,
    pub(crate) epoch: u8,
    pub(crate) nonce: u8,
}

impl Ticket {
    /// The fencing pair as the store compares it.
    pub(crate) fn pair(self) -> Pair {
        Pair { epoch: self.epoch.into(), nonce: char::from(b'a' + self.nonce).to_string() }
    }
}

/// How an owner ends its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Finish {
    Completed,
    CrashLoop,
    Cancelled,
}

impl Finish {
    pub(crate) const fn end(self) -> End {
        match self {
            Self::Completed => End::Completed,
            Self::CrashLoop => End::Failed(ReasonCode::CrashLoop),
            Self::Cancelled => End::Cancelled,
        }
    }

    pub(crate) const fn status(self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::CrashLoop => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }
}

/// What an owner does next. All but the work of a node is one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Job {
    /// Runs a node, then commits its end.
    Work { node: u8 },
    /// Passes a gate without an answer: only where a guard is left out.
    Pass { node: u8 },
    /// Opens a gate and parks.
    Open { gate: char },
    /// Parks at the open gate.
    Park,
    /// Takes an answer from the inbox.
    Answer { node: u8, opening: u8, key: Key, signal: u8 },
    /// Ends the run.
    End(Finish),
}

impl Job {
    /// The record that the commit appends.
    pub(crate) const fn record(self) -> Record {
        match self {
            Self::Work { node } | Self::Pass { node } => Record::Done { node },
            Self::Open { gate } => Record::Opened { gate },
            Self::Park => Record::Rested,
            Self::Answer { node, opening, signal, .. } => {
                Record::Answered { node, opening, signal }
            }
            Self::End(finish) => Record::Ended(finish.status()),
        }
    }

    /// Whether the commit parks.
    pub(crate) const fn is_park(self) -> bool {
        match self {
            Self::Open { .. } | Self::Park => true,
            Self::Work { .. } | Self::Pass { .. } | Self::Answer { .. } | Self::End(_) => false,
        }
    }

    /// Whether the commit moves the run on.
    pub(crate) const fn is_progress(self) -> bool {
        match self {
            Self::Work { .. } | Self::Pass { .. } | Self::Answer { .. } => true,
            Self::Open { .. } | Self::Park | Self::End(_) => false,
        }
    }
}

/// A commit. Its repeats are equal to it, so that it is its own request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Write {
    pub(crate) ticket: Ticket,
    /// How long the journal is, as far as the owner knows.
    pub(crate) from: u8,
    pub(crate) job: Job,
}
