//! What can go wrong between a caller and a store.

use holdpoint_graph::{Code, Refusal, RequestId};

/// A failure of a store. What a store *answers* (fenced, moved, busy) is no error but a reply.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store did not take the call; nothing was written.
    #[error("the store is not available: {cause}")]
    Unavailable {
        /// Why.
        cause: String,
    },
    /// The store is out of memory or disk; nothing was written.
    #[error("the store is full: {cause}")]
    Full {
        /// What is full.
        cause: String,
    },
    /// The reply did not come: the write may or may not have happened.
    #[error("the outcome of request {request} is unknown: {cause}; repeat it with the same id")]
    UnknownOutcome {
        /// The request, to be repeated.
        request: RequestId,
        /// What happened.
        cause: String,
    },
    /// Something stored is damaged; nothing was written.
    #[error("{what} is damaged: {why}")]
    Corrupt {
        /// The thing, with its id.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store forgot its namespace (it was flushed, or restarted empty).
    #[error("the store was reset: it has no namespace {namespace:?} any more")]
    Reset {
        /// The namespace.
        namespace: String,
    },
    /// The store or its settings cannot be used.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl StoreError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Unavailable { .. } => Code::StoreUnavailable,
            Self::Full { .. } => Code::StoreFull,
            Self::UnknownOutcome { .. } => Code::UnknownOutcome,
            Self::Corrupt { .. } => Code::StateCorrupt,
            Self::Reset { .. } => Code::StoreReset,
            Self::Refused(refusal) => refusal.code(),
        }
    }

    /// Whether the same call may succeed later. Every mutating call may be repeated with its
    /// request id and has one effect.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } | Self::UnknownOutcome { .. } => true,
            Self::Corrupt { .. } | Self::Reset { .. } | Self::Refused(_) => false,
        }
    }
}
