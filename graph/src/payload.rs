//! The versioned envelope of a run: what a producer stores and a worker reads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Budget, Code, Patch, Progress, Refusal, State, event::Origin};

/// The version of the envelope that this program writes; it reads this one only.
pub const ENVELOPE_VERSION: u32 = 1;
/// What a newer program writes: a rollout mixes two neighbours.
const NEXT_VERSION: u32 = ENVELOPE_VERSION + 1;

/// What a run starts from: JSON, stored once beside the journal.
///
/// ```
/// use holdpoint_graph::{RunPayload, State};
/// let payload = RunPayload::new(State::new().with("order", 7));
/// let again = RunPayload::decode(&payload.encode()).unwrap();
/// assert_eq!(again.initial.get("order"), Some(&7.into()));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPayload {
    /// The version of the envelope.
    pub version: u32,
    /// The input: goes over the session's last state through the reducers.
    #[serde(default)]
    pub initial: State,
    /// Goes on with the session's unfinished run in place of a new one. Never stored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resume: bool,
    /// The checkpoint of another run that this one begins at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointStart>,
    /// What of the session's last state the run begins with.
    #[serde(default, skip_serializing_if = "Memory::is_all")]
    pub memory: Memory,
    /// The most distinct tasks of the run's life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// What the run may use up before a person is asked; nothing: what the worker says.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
    /// After so many ms without a move the plan is stale; none: 24 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_after_ms: Option<i64>,
    /// What happens to a stale run.
    #[serde(default, skip_serializing_if = "OnStale::is_ask")]
    pub on_stale: OnStale,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A checkpoint to begin at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointStart {
    /// Where it is from.
    pub origin: Origin,
    /// State and position there.
    pub progress: Box<Progress>,
    /// What was edited.
    pub patches: Vec<Patch>,
}

/// What of the session's last state the next run begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// All of it.
    #[default]
    All,
    /// These keys.
    Keys(Vec<String>),
    /// Nothing.
    None,
}

impl Memory {
    fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// The part of `state` that is remembered.
    #[must_use]
    pub fn of(&self, state: State) -> State {
        match self {
            Self::All => state,
            Self::None => State::new(),
            Self::Keys(keys) => state.into_iter().filter(|(key, _)| keys.contains(key)).collect(),
        }
    }
}

/// What happens to a run that waited longer than its plan is good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStale {
    /// It goes on.
    Resume,
    /// A person is asked.
    #[default]
    Ask,
    /// It is cancelled.
    Cancel,
}

impl OnStale {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_ask(&self) -> bool {
        matches!(self, Self::Ask)
    }
}

impl RunPayload {
    /// An envelope for a new run.
    #[must_use]
    pub fn new(initial: State) -> Self {
        Self {
            version: ENVELOPE_VERSION,
            initial,
            resume: false,
            checkpoint: None,
            memory: Memory::All,
            max_steps: None,
            budget: Budget::default(),
            stale_after_ms: None,
            on_stale: OnStale::Ask,
        }
    }

    /// The stored form.
    ///
    /// # Panics
    /// Never: an envelope always has a text.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an envelope always has a text")
    }

    /// Reads a stored form.
    ///
    /// # Errors
    /// `E_SCHEMA_NEWER` for what a newer program wrote; `E_ENVELOPE_VERSION`, `E_UNKNOWN_FIELD` or
    /// `E_JSON`, with what was found.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        match serde_json::from_slice::<Self>(bytes) {
            Ok(payload) if payload.version == ENVELOPE_VERSION => Ok(payload),
            Ok(payload) => Err(wrong_version(&payload.version.into())),
            Err(fault) => {
                let fields: Option<Map<String, Value>> = serde_json::from_slice(bytes).ok();
                match fields.as_ref().and_then(|fields| fields.get("version")) {
                    Some(version) if *version != ENVELOPE_VERSION => Err(wrong_version(version)),
                    Some(_) | None => {
                        Err(Refusal::new(Code::Json, "envelope", format!("is none: {fault}")))
                    }
                }
            }
        }
    }
}

fn wrong_version(found: &Value) -> Refusal {
    let text = crate::printable(&found.to_string(), 40);
    let message = format!("is {text}; supported: {ENVELOPE_VERSION}");
    let code = if *found == NEXT_VERSION { Code::SchemaNewer } else { Code::EnvelopeVersion };
    Refusal::new(code, "version", message)
}
