//! The stored form of an answer: what a producer puts into a run's inbox and an executor takes out.

use holdpoint_graph::Answer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An answer with who, when, and the request that brought it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalRecord {
    /// The answer.
    pub answer: Value,
    /// Who gave it.
    pub by: String,
    /// When, in ms since 1970 by the store's clock.
    pub at_ms: i64,
    /// A comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The groups they spoke for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The id of the call that brought it.
    pub request: String,
}

impl SignalRecord {
    /// The stored form.
    ///
    /// # Panics
    /// Never: an answer always has a text.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer always has a text")
    }

    /// The answer with who gave it, as a question takes it.
    #[must_use]
    pub fn to_answer(&self) -> Answer {
        Answer {
            comment: self.comment.clone(),
            groups: self.groups.clone(),
            from: self.from.clone(),
            ..Answer::new(self.answer.clone(), self.by.clone(), self.at_ms)
        }
    }

    /// Reads a stored form.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
