//! Bugs that are planted on purpose, so that the torture can show that it finds their like.
//!
//! All of them are in one program that is built with the feature `planted`; which one is at work
//! is chosen when it starts.

use std::sync::OnceLock;

/// The variable with the number of the bug; without it there is none.
pub const ENV_PLANTED: &str = "HOLDPOINT_PLANTED";

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Planted {
    /// No store compares the pair of a lease.
    NoFencing = 1,
    /// A park does not look for an answer that waits.
    InboxSkipped = 2,
    /// A write is acknowledged before it is durable.
    EarlyAcknowledgement = 3,
    /// A claim takes the run out of its lane and leaves no lease.
    Pop = 4,
    /// An error in the middle of a script is swallowed.
    ErrorSwallowed = 5,
    /// Request ids are ignored.
    RetryNotIdempotent = 6,
    /// Leases are reaped after the store stalled or its clock jumped.
    NoHold = 7,
    /// Leases are not renewed once the worker drains.
    NoRenewalInDrain = 8,
    /// The counter of lost workers is raised by the reaper, not by the claim.
    CounterAtReap = 9,
    /// The cancel of a running run is told to listeners, and not stored.
    CancelInMemory = 10,
    /// A commit of several events leaves the first one out.
    EventSkipped = 11,
    /// An answer is taken whatever arguments it was given for.
    AnswerUnbound = 12,
}

impl Planted {
    /// All of them, by their number.
    pub const ALL: [Self; 12] = [
        Self::NoFencing,
        Self::InboxSkipped,
        Self::EarlyAcknowledgement,
        Self::Pop,
        Self::ErrorSwallowed,
        Self::RetryNotIdempotent,
        Self::NoHold,
        Self::NoRenewalInDrain,
        Self::CounterAtReap,
        Self::CancelInMemory,
        Self::EventSkipped,
        Self::AnswerUnbound,
    ];

    /// The one at work in this process.
    ///
    /// # Panics
    /// When the variable names no bug: a torture without it would prove nothing.
    #[must_use]
    pub fn at_work() -> Option<Self> {
        static CHOSEN: OnceLock<Option<Planted>> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let chosen = std::env::var(ENV_PLANTED).ok()?;
            let bug = Self::ALL.into_iter().find(|bug| bug.number().to_string() == chosen);
            Some(bug.unwrap_or_else(|| panic!("{ENV_PLANTED} is {chosen:?}, which is no bug")))
        })
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether this one is at work.
    #[must_use]
    pub fn is_at_work(self) -> bool {
        Self::at_work() == Some(self)
    }
}
