//! Answers to questions, and what becomes of them.

use holdpoint_graph::{InterruptId, RequestId, RunId, RunStatus};

use crate::Durability;

/// Which question a signal answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// This opening of a question.
    Interrupt(InterruptId),
    /// The gate of this name, open or yet to open.
    Gate(String),
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
        /// The level of the acknowledgement.
        durability: Durability,
    },
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

/// A signal that waits in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// `i` and an interrupt's id, or `g` and a gate's name.
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

    /// The inbox key of an answer that waits for a gate to open.
    #[must_use]
    pub fn of_gate(gate: &str) -> String {
        format!("g{gate}")
    }
}
