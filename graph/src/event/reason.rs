//! Why an attempt or a run failed.

use serde::{Deserialize, Serialize};

/// A failed attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The code; `node_error` when the node named none.
    pub code: String,
    /// The message, cut to a limit.
    pub message: String,
}

/// Why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// A node failed for good.
    NodeError,
    /// Workers were lost again and again without progress.
    CrashLoop,
    /// The time to start or end by has passed.
    Expired,
    /// The graph that a worker resolved cannot go on with the run.
    IncompatibleGraph,
    /// Something stored cannot be read.
    Undecodable,
    /// The run used up its steps.
    StepLimit,
    /// A budget was used up, and a person said that the run ends there.
    BudgetExceeded,
    /// Two branches replaced one key with different values.
    WriteConflict,
}

impl ReasonCode {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeError => "node_error",
            Self::CrashLoop => "crash_loop",
            Self::Expired => "expired",
            Self::IncompatibleGraph => "incompatible_graph",
            Self::Undecodable => "undecodable",
            Self::StepLimit => "step_limit",
            Self::BudgetExceeded => "budget_exceeded",
            Self::WriteConflict => "write_conflict",
        }
    }

    /// The reason of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::NodeError,
            Self::CrashLoop,
            Self::Expired,
            Self::IncompatibleGraph,
            Self::Undecodable,
            Self::StepLimit,
            Self::BudgetExceeded,
            Self::WriteConflict,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == word)
    }
}

/// Why a run failed, with the words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The code.
    pub code: ReasonCode,
    /// What happened, with the values.
    pub message: String,
    /// The node it happened at.
    pub node: Option<String>,
}
