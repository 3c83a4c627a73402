//! How the nodes of an inlined sub-graph see the state: some keys under other names.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::State;

/// The key mapping of a sub-graph: inner names of outer keys. Keys not named are shared as they
/// are.
///
/// ```
/// use holdpoint_graph::KeyMapping;
/// let mapping = KeyMapping::new().map("order_text", "text");
/// # let _ = mapping;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyMapping {
    pairs: Vec<(String, String)>,
}

impl KeyMapping {
    /// Every key is shared under its own name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The outer key `outer` is called `inner` inside, in and out.
    #[must_use]
    pub fn map(mut self, outer: impl Into<String>, inner: impl Into<String>) -> Self {
        self.pairs.push((outer.into(), inner.into()));
        self
    }

    /// The first name that stands on one side twice, which would make two keys one.
    pub(crate) fn doubled(&self) -> Option<&str> {
        let twice = |names: Vec<&'_ String>| -> Option<String> {
            let mut seen = std::collections::BTreeSet::new();
            names.into_iter().find(|name| !seen.insert(name.as_str())).cloned()
        };
        let outer = twice(self.pairs.iter().map(|(outer, _)| outer).collect());
        let inner = twice(self.pairs.iter().map(|(_, inner)| inner).collect());
        let name = outer.or(inner)?;
        self.pairs.iter().flat_map(|(a, b)| [a, b]).find(|n| **n == name).map(String::as_str)
    }

    /// The mapping of the sub-graph `prefix`, made one-to-one: an inner key that has the name of a
    /// mapped outer key is a key of the sub-graph's own, kept under the prefix.
    pub(crate) fn closed(&self, prefix: &str) -> Self {
        let mut pairs = self.pairs.clone();
        for (outer, _) in &self.pairs {
            if !self.pairs.iter().any(|(_, inner)| inner == outer) {
                pairs.push((format!("{prefix}/{outer}"), outer.clone()));
            }
        }
        Self { pairs }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The outer name of an inner key.
    pub(crate) fn outer<'a>(&'a self, inner: &'a str) -> &'a str {
        self.pairs.iter().find(|(_, i)| i == inner).map_or(inner, |(outer, _)| outer)
    }

    /// The inner name of an outer key, or none when it is hidden by a mapped one.
    fn inner<'a>(&'a self, outer: &'a str) -> Option<&'a str> {
        if let Some((_, inner)) = self.pairs.iter().find(|(o, _)| o == outer) {
            return Some(inner);
        }
        let is_hidden = self.pairs.iter().any(|(_, inner)| inner == outer);
        (!is_hidden).then_some(outer)
    }
}

/// The mappings that lie between a node and the run's state, outermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyView {
    layers: Vec<KeyMapping>,
}

impl KeyView {
    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.layers.is_empty()
    }

    /// The view through one mapping more, on the outside.
    pub(crate) fn under(&self, mapping: &KeyMapping) -> Self {
        if mapping.is_empty() {
            return self.clone();
        }
        let mut layers = vec![mapping.clone()];
        layers.extend(self.layers.iter().cloned());
        Self { layers }
    }

    pub(crate) fn inside(&self, state: &State) -> State {
        if self.layers.is_empty() {
            return state.clone();
        }
        let seen =
            |(key, value): (&String, &Value)| Some((self.inner(key)?.to_owned(), value.clone()));
        state.iter().filter_map(seen).collect()
    }

    /// The inner name of an outer key, or none when it is hidden.
    pub(crate) fn inner<'a>(&'a self, outer: &'a str) -> Option<&'a str> {
        let mut layers = self.layers.iter();
        layers.try_fold(outer, |key, layer| layer.inner(key))
    }

    pub(crate) fn outer(&self, inner: &str) -> String {
        let step = |key: String, layer: &KeyMapping| layer.outer(&key).to_owned();
        self.layers.iter().rev().fold(inner.to_owned(), step)
    }
}
