//! What a producer can be told, with the values that a program needs to go on.

use holdpoint_graph::{
    Code, GraphId, InterruptId, KeyId, QueueId, Refusal, RequestId, RunId, RunStatus, SessionId,
    printable,
};
use holdpoint_storage::StoreError;
use serde_json::Value;

use crate::format_time;

/// A decision that was made: the answer, who gave it, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The answer.
    pub answer: Value,
    /// Who gave it.
    pub by: String,
    /// When, in ms since 1970 by the store's clock.
    pub at_ms: i64,
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let answer = printable(&self.answer.to_string(), 80);
        let by = printable(&self.by, 80);
        write!(f, "{answer} by {by} at {}", format_time(self.at_ms))
    }
}

/// Why a call of a producer did not do what it was asked for. Nothing was stored, except perhaps
/// with [`ProducerError::UnknownOutcome`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProducerError {
    /// An input is not acceptable.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The write may or may not have happened; a repeat with the same request id has one effect.
    #[error("the outcome of request {request} is unknown: {cause}; repeat it with the same id")]
    UnknownOutcome {
        /// The request.
        request: RequestId,
        /// What happened.
        cause: String,
    },
    /// There is no such thing in this namespace.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// Workers published graphs, and this one is not among them.
    #[error("no worker ever published the graph {graph}{}", meant(near.as_deref()))]
    UnknownGraph {
        /// The graph.
        graph: GraphId,
        /// The name that is nearest.
        near: Option<String>,
    },
    /// The key was used for other work.
    #[error("the key {key} names run {run}, which has another payload")]
    KeyConflict {
        /// The key.
        key: KeyId,
        /// The run it names.
        run: RunId,
    },
    /// The request id was used for another answer.
    #[error("the request {request} brought another answer before: {decision}")]
    RequestConflict {
        /// The request.
        request: RequestId,
        /// What it brought.
        decision: Decision,
    },
    /// The run id is taken.
    #[error("the run {run} exists already")]
    RunExists {
        /// The run.
        run: RunId,
    },
    /// The session has an active run.
    #[error("the session {session} is busy with run {run}{}", asks(question.as_ref()))]
    SessionBusy {
        /// The session.
        session: SessionId,
        /// The active run.
        run: RunId,
        /// Its open question.
        question: Option<InterruptId>,
    },
    /// The session belongs to another graph.
    #[error("the session {session} belongs to the graph {graph}")]
    SessionGraph {
        /// The session.
        session: SessionId,
        /// Its graph.
        graph: GraphId,
    },
    /// The queue is at its depth.
    #[error("{depth} runs wait in the queue {queue}, which is its depth")]
    QueueFull {
        /// The queue.
        queue: QueueId,
        /// How many wait.
        depth: u64,
    },
    /// The run has not come to where the call makes sense.
    #[error("the run {run} is {}: {why}", status.as_str())]
    RunActive {
        /// The run.
        run: RunId,
        /// Its state.
        status: RunStatus,
        /// What to do about it.
        why: String,
    },
    /// The run has ended.
    #[error("the run {run} is {}{}", status.as_str(), answered(decision.as_ref()))]
    RunFinal {
        /// The run.
        run: RunId,
        /// How it ended.
        status: RunStatus,
        /// The decision on the question that was addressed.
        decision: Option<Decision>,
    },
    /// Only a failed run can be redriven.
    #[error("the run {run} is {}, only a failed run can be redriven", status.as_str())]
    NotFailed {
        /// The run.
        run: RunId,
        /// Its state.
        status: RunStatus,
    },
    /// Another answer was first.
    #[error("the question was answered already: {decision}")]
    Decided {
        /// The run.
        run: RunId,
        /// The question, when the answer was to one.
        interrupt: Option<InterruptId>,
        /// The answer.
        decision: Decision,
    },
    /// The question closed without an answer.
    #[error("the question {interrupt} of run {run} is closed")]
    StaleInterrupt {
        /// The run.
        run: RunId,
        /// The question.
        interrupt: InterruptId,
    },
    /// Several open questions fit.
    #[error("{} questions of run {run} fit: {}; name one", open.len(), questions(open))]
    Ambiguous {
        /// The run.
        run: RunId,
        /// The questions with their texts, oldest first.
        open: Vec<(InterruptId, String)>,
    },
    /// No question is open, or the graph has no such gate.
    #[error("{why}")]
    NoQuestion {
        /// The run.
        run: RunId,
        /// What was looked for.
        why: String,
    },
    /// The question is about something else than what was shown.
    #[error("the question of run {run} is about something else by now, its hash is {args_hash}")]
    ArgsChanged {
        /// The run.
        run: RunId,
        /// The hash of what it is about.
        args_hash: String,
    },
    /// One of several answers of a call is refused, so that none of them was taken.
    #[error("none of the answers was taken, because of the one to {to}: {error}")]
    OneOfSeveral {
        /// The id of its question, or the name of its gate.
        to: String,
        /// Why that one is.
        error: Box<ProducerError>,
    },
    /// The run moved since the caller looked.
    #[error("the run {run} moved: its newest event is {}", number(*newest))]
    Moved {
        /// The run.
        run: RunId,
        /// The number of its newest event.
        newest: Option<u64>,
    },
    /// There is nothing to begin at.
    #[error("there is no checkpoint: {why}")]
    NoCheckpoint {
        /// Why.
        why: String,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(", did you mean {near}?"))
}

fn asks(question: Option<&InterruptId>) -> String {
    question.map_or_else(String::new, |question| format!(", which waits for question {question}"))
}

fn answered(decision: Option<&Decision>) -> String {
    decision.map_or_else(String::new, |decision| format!("; its question was answered {decision}"))
}

fn questions(open: &[(InterruptId, String)]) -> String {
    let shown = open.iter().map(|(id, text)| format!("{id} ({})", printable(text, 60)));
    shown.collect::<Vec<_>>().join(", ")
}

fn number(newest: Option<u64>) -> String {
    newest.map_or_else(|| "none".to_owned(), |newest| newest.to_string())
}

impl ProducerError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Store(error) => error.code(),
            Self::UnknownOutcome { .. } => Code::UnknownOutcome,
            Self::NotFound { .. } => Code::NotFound,
            Self::UnknownGraph { .. } => Code::UnknownGraph,
            Self::KeyConflict { .. } | Self::RequestConflict { .. } => Code::IdempotencyConflict,
            Self::RunExists { .. } => Code::RunExists,
            Self::SessionBusy { .. } => Code::SessionBusy,
            Self::SessionGraph { .. } => Code::SessionGraph,
            Self::QueueFull { .. } => Code::QueueFull,
            Self::RunActive { .. } => Code::RunActive,
            Self::RunFinal { .. } => Code::RunFinal,
            Self::NotFailed { .. } => Code::NotFailed,
            Self::Decided { .. } => Code::Decided,
            Self::StaleInterrupt { .. } => Code::StaleInterrupt,
            Self::Ambiguous { .. } => Code::Ambiguous,
            Self::NoQuestion { .. } => Code::NoQuestion,
            Self::ArgsChanged { .. } => Code::ArgsChanged,
            Self::OneOfSeveral { error, .. } => error.code(),
            Self::Moved { .. } => Code::Sequence,
            Self::NoCheckpoint { .. } => Code::NoCheckpoint,
        }
    }

    /// The field of the input that is at fault; empty when it is none alone.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Refused(refusal) | Self::Store(StoreError::Refused(refusal)) => refusal.field(),
            Self::Store(_) | Self::UnknownOutcome { .. } => "",
            Self::NotFound { what, .. } => what,
            Self::UnknownGraph { .. } => "graph",
            Self::KeyConflict { .. } | Self::RequestConflict { .. } => "key",
            Self::SessionBusy { .. } | Self::SessionGraph { .. } => "session",
            Self::QueueFull { .. } => "queue",
            Self::RunExists { .. }
            | Self::RunActive { .. }
            | Self::RunFinal { .. }
            | Self::NotFailed { .. } => "run",
            Self::Decided { .. }
            | Self::StaleInterrupt { .. }
            | Self::Ambiguous { .. }
            | Self::NoQuestion { .. } => "interrupt",
            Self::ArgsChanged { .. } => "args_hash",
            Self::OneOfSeveral { error, .. } => error.field(),
            Self::Moved { .. } => "if_seq",
            Self::NoCheckpoint { .. } => "at",
        }
    }

    /// Whether the same call may succeed later, with the same request id.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::OneOfSeveral { error, .. } => error.is_retryable(),
            Self::UnknownOutcome { .. } | Self::QueueFull { .. } => true,
            Self::Refused(_)
            | Self::NotFound { .. }
            | Self::UnknownGraph { .. }
            | Self::KeyConflict { .. }
            | Self::RequestConflict { .. }
            | Self::RunExists { .. }
            | Self::SessionBusy { .. }
            | Self::SessionGraph { .. }
            | Self::RunActive { .. }
            | Self::RunFinal { .. }
            | Self::NotFailed { .. }
            | Self::Decided { .. }
            | Self::StaleInterrupt { .. }
            | Self::Ambiguous { .. }
            | Self::NoQuestion { .. }
            | Self::ArgsChanged { .. }
            | Self::Moved { .. }
            | Self::NoCheckpoint { .. } => false,
        }
    }

    pub(crate) fn no_run(run: &RunId) -> Self {
        Self::NotFound { what: "run", id: run.to_string() }
    }

    pub(crate) fn corrupt(run: &RunId, why: impl std::fmt::Display) -> Self {
        Self::Store(StoreError::Corrupt { what: format!("run {run}"), why: why.to_string() })
    }
}

impl From<StoreError> for ProducerError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownOutcome { request, cause } => {
                Self::UnknownOutcome { request, cause }
            }
            StoreError::Unavailable { .. }
            | StoreError::Full { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Reset { .. }
            | StoreError::Refused(_)
            | _ => Self::Store(error),
        }
    }
}
