//! The life of a run: one enum, and one function for each thing that can happen to it.
//!
//! This is the only place that says which moves exist. The SQLite store calls these functions
//! inside its transactions, the model checker explores them, and the Redis scripts are held to
//! them by tests that compare replies and stored state.

use serde::{Deserialize, Serialize};

use crate::{ReasonCode, WorkerId};

/// The state of a run as a word, as lists and filters use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for a time.
    Scheduled,
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// It waits for an answer, and holds nothing.
    #[serde(alias = "paused")]
    Parked,
    /// It ended well.
    Completed,
    /// It failed; only a redrive changes that.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// All seven, in the order of a run's life.
    pub const ALL: [Self; 7] = [
        Self::Scheduled,
        Self::Queued,
        Self::Running,
        Self::Parked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a word; `paused` is read as `parked`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        if word == "paused" {
            return Some(Self::Parked);
        }
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Scheduled | Self::Queued | Self::Running | Self::Parked => false,
        }
    }
}

/// The fencing pair: every write of an owner names it, and is refused when it is not the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The larger of the last epoch + 1 and the store's time in µs.
    pub epoch: u64,
    /// 128 random bits of the claim, as text.
    pub nonce: String,
}

/// A lease as the store holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTerm {
    /// The fencing pair.
    pub pair: Pair,
    /// Who holds it.
    pub worker: WorkerId,
    /// When it ends, in ms since 1970 by the store's clock.
    pub deadline_ms: i64,
}

/// The state of a run, each with just the data that exists then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// It waits for a time.
    Scheduled {
        /// Until when, in ms since 1970.
        until_ms: i64,
    },
    /// It waits for a worker (or for its turn in its session).
    Queued,
    /// A worker has it.
    Running {
        /// The lease.
        lease: LeaseTerm,
    },
    /// It waits for an answer.
    Parked {
        /// When it wakes by itself.
        wake_at_ms: Option<i64>,
    },
    /// It ended well.
    Completed,
    /// It failed.
    Failed {
        /// Why.
        reason: ReasonCode,
    },
    /// It was cancelled.
    Cancelled,
}

/// How an owner ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well.
    Completed,
    /// For this reason.
    Failed(ReasonCode),
    /// As it was asked to.
    Cancelled,
}

/// Why a move is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifeError {
    /// The state does not know this event.
    #[error("a {} run cannot be {event}", status.as_str())]
    Illegal {
        /// The state.
        status: RunStatus,
        /// The event.
        event: &'static str,
    },
    /// The caller's pair is not the newest: it is no longer the owner.
    #[error("the lease is no longer the caller's")]
    Fenced,
    /// The time has not come.
    #[error("the run is due at {due_ms} ms, it is {now_ms} ms")]
    NotDue {
        /// When it is due.
        due_ms: i64,
        /// The time of the call.
        now_ms: i64,
    },
}

impl Life {
    /// The state as a word.
    #[must_use]
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Scheduled { .. } => RunStatus::Scheduled,
            Self::Queued => RunStatus::Queued,
            Self::Running { .. } => RunStatus::Running,
            Self::Parked { .. } => RunStatus::Parked,
            Self::Completed => RunStatus::Completed,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }

    const fn illegal(&self, event: &'static str) -> LifeError {
        LifeError::Illegal { status: self.status(), event }
    }

    /// The lease, when `pair` is the newest.
    fn owned(self, pair: &Pair) -> Result<LeaseTerm, LifeError> {
        match self {
            Self::Running { lease } if lease.pair == *pair => Ok(lease),
            Self::Running { .. }
            | Self::Scheduled { .. }
            | Self::Queued
            | Self::Parked { .. }
            | Self::Completed
            | Self::Failed { .. }
            | Self::Cancelled => Err(LifeError::Fenced),
        }
    }

    /// A worker takes a queued run.
    ///
    /// # Errors
    /// When the run is not queued.
    pub fn claim(self, lease: LeaseTerm) -> Result<Self, LifeError> {
        match self {
            Self::Queued => Ok(Self::Running { lease }),
            Self::Scheduled { .. }
            | Self::Running { .. }
            | Self::Parked { .. }
            | Self::Completed
            | Self::Failed { .. }
            | Self::Cancelled => Err(self.illegal("claimed")),
        }
    }

    /// The owner keeps the run; a commit that goes on is a renewal too.
    ///
    /// # Errors
    /// [`LifeError::Fenced`] when the pair is not the newest.
    pub fn renew(self, pair: &Pair, deadline_ms: i64) -> Result<Self, LifeError> {
        let lease = self.owned(pair)?;
        Ok(Self::Running { lease: LeaseTerm { deadline_ms, ..lease } })
    }

    /// The owner parks the run.
    ///
    /// # Errors
    /// [`LifeError::Fenced`] when the pair is not the newest.
    pub fn park(self, pair: &Pair, wake_at_ms: Option<i64>) -> Result<Self, LifeError> {
        self.owned(pair)?;
        Ok(Self::Parked { wake_at_ms })
    }

    /// The owner puts the run off; a time that has come makes it claimable at once.
    ///
    /// # Errors
    /// [`LifeError::Fenced`] when the pair is not the newest.
    pub fn reschedule(self, pair: &Pair, until_ms: i64, now_ms: i64) -> Result<Self, LifeError> {
        self.owned(pair)?;
        Ok(Self::due(until_ms, now_ms))
    }

    /// The owner hands the run back.
    ///
    /// # Errors
    /// [`LifeError::Fenced`] when the pair is not the newest.
    pub fn release(self, pair: &Pair) -> Result<Self, LifeError> {
        self.owned(pair)?;
        Ok(Self::Queued)
    }

    /// The owner ends the run.
    ///
    /// # Errors
    /// [`LifeError::Fenced`] when the pair is not the newest.
    pub fn finish(self, pair: &Pair, end: End) -> Result<Self, LifeError> {
        self.owned(pair)?;
        Ok(match end {
            End::Completed => Self::Completed,
            End::Failed(reason) => Self::Failed { reason },
            End::Cancelled => Self::Cancelled,
        })
    }

    /// The owner is gone; the run is claimable again at `until_ms`.
    ///
    /// # Errors
    /// When nobody has the run.
    pub fn lose(self, until_ms: i64, now_ms: i64) -> Result<Self, LifeError> {
        match self {
            Self::Running { .. } => Ok(Self::due(until_ms, now_ms)),
            Self::Scheduled { .. }
            | Self::Queued
            | Self::Parked { .. }
            | Self::Completed
            | Self::Failed { .. }
            | Self::Cancelled => Err(self.illegal("lost")),
        }
    }

    /// A timer of the run has come.
    ///
    /// # Errors
    /// When it has none, or it is not due.
    pub fn fire(self, now_ms: i64) -> Result<Self, LifeError> {
        match self {
            Self::Scheduled { until_ms: due_ms } | Self::Parked { wake_at_ms: Some(due_ms) } => {
                if due_ms > now_ms {
                    return Err(LifeError::NotDue { due_ms, now_ms });
                }
                Ok(Self::Queued)
            }
            Self::Queued
            | Self::Running { .. }
            | Self::Parked { wake_at_ms: None }
            | Self::Completed
            | Self::Failed { .. }
            | Self::Cancelled => Err(self.illegal("fired")),
        }
    }

    /// A person makes a scheduled run due.
    ///
    /// # Errors
    /// When the run is not scheduled.
    pub fn start_now(self) -> Result<Self, LifeError> {
        match self {
            Self::Scheduled { .. } => Ok(Self::Queued),
            Self::Queued
            | Self::Running { .. }
            | Self::Parked { .. }
            | Self::Completed
            | Self::Failed { .. }
            | Self::Cancelled => Err(self.illegal("started now")),
        }
    }

    /// A signal arrived for the run; only a parked one is woken by it.
    ///
    /// # Errors
    /// When the run has ended.
    pub fn signal(self) -> Result<Self, LifeError> {
        match self {
            Self::Parked { .. } => Ok(Self::Queued),
            Self::Scheduled { .. } | Self::Queued | Self::Running { .. } => Ok(self),
            Self::Completed | Self::Failed { .. } | Self::Cancelled => {
                Err(self.illegal("signalled"))
            }
        }
    }

    /// The run is cancelled; one that a worker has goes on until its owner ends it.
    ///
    /// # Errors
    /// When the run completed or failed; cancelling a cancelled one again is no error.
    pub fn cancel(self) -> Result<Self, LifeError> {
        match self {
            Self::Scheduled { .. } | Self::Queued | Self::Parked { .. } | Self::Cancelled => {
                Ok(Self::Cancelled)
            }
            Self::Running { .. } => Ok(self),
            Self::Completed | Self::Failed { .. } => Err(self.illegal("cancelled")),
        }
    }

    /// An operator sends a failed run on.
    ///
    /// # Errors
    /// When the run has not failed.
    pub fn redrive(self) -> Result<Self, LifeError> {
        match self {
            Self::Failed { .. } => Ok(Self::Queued),
            Self::Scheduled { .. }
            | Self::Queued
            | Self::Running { .. }
            | Self::Parked { .. }
            | Self::Completed
            | Self::Cancelled => Err(self.illegal("redriven")),
        }
    }

    fn due(until_ms: i64, now_ms: i64) -> Self {
        if until_ms > now_ms { Self::Scheduled { until_ms } } else { Self::Queued }
    }
}

#[cfg(test)]
mod tests;
