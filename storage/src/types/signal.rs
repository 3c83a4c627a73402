//! Answers to questions, and what becomes of them.

use holdpoint_graph::{Ballot, InterruptId, RequestId, RunId, RunStatus};

use crate::{Durability, Vote};

/// Which question a signal answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// This opening of a question.
    Interrupt(InterruptId),
    /// The gate of this name, open or yet to open.
    Gate(String),
    /// The gate of this name, by one who saw that it had not opened when the journal was so long:
    /// when it is longer the gate may have opened and been answered, and somebody has to look.
    Unopened {
        /// The gate.
        gate: String,
        /// How many records there were.
        seq: u64,
    },
    /// The one question that is open.
    Only,
}

/// An answer to store.
#[derive(Debug, Clone)]
pub struct SignalRequest {
    /// The run.
    pub run: RunId,
    /// The call's id.
    pub request: RequestId,
    /// The question.
    pub address: Address,
    /// The hash of what the decision was made about, when the caller knows it.
    pub args_hash: Option<String>,
    /// What the answer counts as, when the question needs several. It is then one vote, and the
    /// answer only when as many as it needs are there with it.
    pub ballot: Option<Ballot>,
    /// The answer, opaque to the store.
    pub record: Vec<u8>,
}

/// What became of a signal. Nothing is consumed on a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalReply {
    /// It answers this open question. Also the reply to a repeat of the same request.
    Delivered {
        /// The question.
        interrupt: InterruptId,
        /// Whether it is one vote of several, which does not decide.
        is_vote: bool,
        /// Whether this request had brought it before.
        is_repeat: bool,
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// This voter has voted already.
    Voted,
    /// The gate is not open; the answer is kept for its first opening.
    Kept {
        /// The level of the acknowledgement.
        durability: Durability,
    },
    /// No such run.
    NotFound,
    /// The run has ended.
    Final {
        /// How.
        status: RunStatus,
    },
    /// The interrupt is not open (never was, or was answered).
    NotOpen,
    /// No question is open.
    NoQuestion,
    /// The journal is longer than the sender saw it.
    Moved,
    /// Several questions fit.
    Ambiguous {
        /// Their ids.
        open: Vec<InterruptId>,
    },
    /// The question is about something else by now.
    ArgsChanged {
        /// The hash of that.
        args_hash: String,
    },
    /// Another answer was first and waits to be taken by the run.
    Decided {
        /// That answer's record.
        record: Vec<u8>,
    },
}

impl SignalReply {
    /// Whether the answer is stored, by this call or by an earlier one of the same request.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        match self {
            Self::Delivered { .. } | Self::Kept { .. } => true,
            Self::Voted
            | Self::NotFound
            | Self::Final { .. }
            | Self::NotOpen
            | Self::NoQuestion
            | Self::Moved
            | Self::Ambiguous { .. }
            | Self::ArgsChanged { .. }
            | Self::Decided { .. } => false,
        }
    }
}

/// What became of several signals of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalsReply {
    /// All are stored: their replies, in the order of the requests.
    Taken(Vec<SignalReply>),
    /// None is, because of this one: the first that is refused.
    Refused {
        /// Which, from 0.
        index: usize,
        /// Why.
        reply: SignalReply,
    },
}

/// A signal that waits in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// `i` and an interrupt's id, `g` and a gate's name, or `v` and an interrupt's id, a choice
    /// and a voter.
    pub key: String,
    /// The record, as the signal brought it.
    pub record: Vec<u8>,
}

impl InboxEntry {
    /// The inbox key of an answer to an interrupt.
    #[must_use]
    pub fn of_interrupt(interrupt: &InterruptId) -> String {
        format!("i{interrupt}")
    }

    /// The inbox key of a vote that does not decide.
    #[must_use]
    pub fn of_vote(interrupt: &InterruptId, ballot: &Ballot) -> String {
        format!("v{interrupt}|{}|{}", ballot.choice, ballot.voter)
    }

    /// The id of the question and the voter, when the key is a vote's.
    #[must_use]
    pub fn vote(&self) -> Option<(&str, Vote)> {
        let (interrupt, rest) = self.key.strip_prefix('v')?.split_once('|')?;
        let (choice, voter) = rest.split_once('|')?;
        Some((interrupt, Vote { choice: choice.to_owned(), voter: voter.to_owned() }))
    }

    /// The inbox key of an answer that waits for a gate to open.
    #[must_use]
    pub fn of_gate(gate: &str) -> String {
        format!("g{gate}")
    }
}
