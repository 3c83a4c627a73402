//! Patches: what an event writes, as data.
//!
//! A reducer runs once, when its node returns; its result is stored as one of these. So the fold
//! of a journal needs no user code, and a step costs bytes in proportion to what it added.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of one key of the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// The key of the state.
    #[serde(rename = "k")]
    pub key: String,
    /// What happens to it.
    #[serde(rename = "o")]
    pub op: PatchOp,
}

/// What happens to one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchOp {
    /// The key gets this value.
    Set(Value),
    /// The items go to the end of the key's list; a value that is no list counts as empty.
    Append(Vec<Value>),
    /// The entries are put into the key's object; a value that is no object counts as empty.
    Merge(Map<String, Value>),
    /// The key goes away.
    Unset,
    /// A custom reducer took `update` and made `result` of it. The join of a fork asks the
    /// reducer again, with `update`; the fold takes `result`.
    Reduced {
        /// What the node returned for the key.
        update: Value,
        /// What the reducer made of it.
        result: Value,
    },
}

impl PatchOp {
    /// Whether the old value is of no matter.
    pub(crate) const fn is_replacement(&self) -> bool {
        match self {
            Self::Set(_) | Self::Unset => true,
            Self::Append(_) | Self::Merge(_) | Self::Reduced { .. } => false,
        }
    }
}

impl Patch {
    /// A patch that sets `key`.
    pub fn set(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { key: key.into(), op: PatchOp::Set(value.into()) }
    }

    pub(crate) fn apply(&self, state: &mut Map<String, Value>) {
        match &self.op {
            PatchOp::Set(value) | PatchOp::Reduced { result: value, .. } => {
                state.insert(self.key.clone(), value.clone());
            }
            PatchOp::Append(items) => {
                let slot = state.entry(self.key.as_str()).or_insert_with(|| Value::Array(vec![]));
                match slot {
                    Value::Array(list) => list.extend(items.iter().cloned()),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Object(_) => *slot = Value::Array(items.clone()),
                }
            }
            PatchOp::Merge(entries) => {
                let slot =
                    state.entry(self.key.as_str()).or_insert_with(|| Value::Object(Map::new()));
                match slot {
                    Value::Object(map) => {
                        map.extend(entries.iter().map(|(k, v)| (k.clone(), v.clone())));
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_) => *slot = Value::Object(entries.clone()),
                }
            }
            PatchOp::Unset => {
                state.remove(&self.key);
            }
        }
    }
}
