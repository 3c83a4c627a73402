//! The state of a run: a JSON object with value semantics.

use std::{ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Number, Value};

use crate::Patch;

/// A run's state. Keys are ordered by their bytes, so equal states have equal JSON texts.
///
/// ```
/// use holdpoint_graph::State;
/// let state = State::from_json(serde_json::json!({ "order": 7 })).unwrap();
/// assert_eq!(state.get("order"), Some(&7.into()));
/// ```
///
/// Copies share their content until one of them is written to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State(Arc<Map<String, Value>>);

impl State {
    /// The empty state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A state from a JSON object; null counts as the empty object, anything else is none.
    #[must_use]
    pub fn from_json(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(map.into()),
            Value::Null => Some(Self::default()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// The state with one key more.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(key, value.into());
        self
    }

    /// The value of `key` as a type of the caller's.
    ///
    /// # Errors
    /// When the value has another shape; an absent key reads as null.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Result<T, serde_json::Error> {
        serde_json::from_value(self.0.get(key).cloned().unwrap_or_default())
    }

    /// Sets one key.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        Arc::make_mut(&mut self.0).insert(key.into(), value);
    }

    /// Applies patches in order. Needs no graph: a patch is data.
    pub fn apply(&mut self, patches: &[Patch]) {
        if patches.is_empty() {
            return;
        }
        let map = Arc::make_mut(&mut self.0);
        for patch in patches {
            patch.apply(map);
        }
    }

    /// The state as a JSON value.
    #[must_use]
    pub fn into_json(self) -> Value {
        Value::Object(Arc::unwrap_or_clone(self.0))
    }

    /// The bytes of the state as JSON.
    #[must_use]
    pub fn json_len(&self) -> usize {
        json_len_of_map(&self.0)
    }
}

/// Bytes of a value's JSON text, without making it.
pub(crate) fn json_len(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(flag) => 5 - usize::from(*flag),
        Value::Number(number) => number_len(number),
        Value::String(text) => string_len(text),
        Value::Array(items) => {
            2 + items.iter().map(json_len).sum::<usize>() + items.len().saturating_sub(1)
        }
        Value::Object(map) => json_len_of_map(map),
    }
}

fn number_len(number: &Number) -> usize {
    let digits = |n: u64| n.checked_ilog10().map_or(1, |log| log as usize + 1);
    match (number.as_u64(), number.as_i64()) {
        (Some(n), _) => digits(n),
        (None, Some(n)) => digits(n.unsigned_abs()) + 1,
        (None, None) => number.to_string().len(),
    }
}

fn json_len_of_map(map: &Map<String, Value>) -> usize {
    let inner = map.iter().map(|(key, value)| string_len(key) + 1 + json_len(value)).sum::<usize>();
    2 + inner + map.len().saturating_sub(1)
}

fn string_len(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..=31 => 5,
        _ => 0,
    });
    text.len() + 2 + escapes.sum::<usize>()
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl Deref for State {
    type Target = Map<String, Value>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(String, Value)> for State {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self(Arc::new(pairs.into_iter().collect()))
    }
}

impl From<Map<String, Value>> for State {
    fn from(map: Map<String, Value>) -> Self {
        Self(Arc::new(map))
    }
}

impl IntoIterator for State {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;
    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counted_length_is_the_length_of_the_text() {
        let value = serde_json::json!({
            "a\n\u{1}\"": [1, 0, 10, 9, -9, i64::MIN, u64::MAX, -2.5, true, false,
                null, "ü\u{8}", {}], "b": {}, "": [],
        });
        assert_eq!(json_len(&value), value.to_string().len());
    }
}
