//! Reducers: how the old value of a key and an update become the new value.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use crate::{Patch, PatchOp, State};

/// How one key of the state combines with an update.
pub trait Reducer: Send + Sync {
    /// The change that `update` makes to `existing` (`None`: the key is absent).
    fn reduce(&self, existing: Option<&Value>, update: Value) -> PatchOp;

    /// The reducer's stable name; it is part of the graph's fingerprint.
    fn name(&self) -> &str;
}

/// Takes the update. The reducer of every key that names none.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplaceReducer;

/// Appends the update's items to a list; a single value is appended as one item, and an existing
/// value that is no list counts as empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct AppendReducer;

/// Puts the update's entries into an object, shallowly; if either is no object the update replaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeMapReducer;

/// A reducer made of a function. The name is part of the fingerprint.
///
/// ```
/// use holdpoint_graph::ReducerFunc;
/// let max = ReducerFunc::new("max", |old, new| {
///     let old = old.and_then(|v| v.as_i64());
///     old.zip(new.as_i64()).map_or(new, |(a, b)| a.max(b).into())
/// });
/// # let _ = max;
/// ```
#[derive(Clone)]
pub struct ReducerFunc {
    name: String,
    function: Arc<ReduceFn>,
}

type ReduceFn = dyn Fn(Option<&Value>, Value) -> Value + Send + Sync;

impl ReducerFunc {
    /// A reducer called `name` that computes the new value.
    pub fn new(
        name: impl Into<String>,
        function: impl Fn(Option<&Value>, Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function) }
    }
}

impl fmt::Debug for ReducerFunc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReducerFunc").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Reducer for ReplaceReducer {
    fn reduce(&self, _existing: Option<&Value>, update: Value) -> PatchOp {
        PatchOp::Set(update)
    }
    fn name(&self) -> &str {
        "replace"
    }
}

impl Reducer for AppendReducer {
    fn reduce(&self, _existing: Option<&Value>, update: Value) -> PatchOp {
        match update {
            Value::Array(items) => PatchOp::Append(items),
            single @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => PatchOp::Append(vec![single]),
        }
    }
    fn name(&self) -> &str {
        "append"
    }
}

impl Reducer for MergeMapReducer {
    fn reduce(&self, existing: Option<&Value>, update: Value) -> PatchOp {
        match (existing, update) {
            (None | Some(Value::Object(_)), Value::Object(entries)) => PatchOp::Merge(entries),
            (_, update) => PatchOp::Set(update),
        }
    }
    fn name(&self) -> &str {
        "merge"
    }
}

impl Reducer for ReducerFunc {
    fn reduce(&self, existing: Option<&Value>, update: Value) -> PatchOp {
        PatchOp::Reduced { result: (self.function)(existing, update.clone()), update }
    }
    fn name(&self) -> &str {
        &self.name
    }
}

/// Which reducer each key has; keys that are not listed replace.
///
/// ```
/// use holdpoint_graph::{AppendReducer, State, StateSchema};
/// let schema = StateSchema::new().with("log", AppendReducer);
/// let old = State::new().with("log", serde_json::json!(["a"]));
/// let new = schema.apply_update(&old, State::new().with("log", "b"));
/// assert_eq!(new.get("log"), Some(&serde_json::json!(["a", "b"])));
/// ```
#[derive(Clone, Default)]
pub struct StateSchema {
    reducers: BTreeMap<String, Arc<dyn Reducer>>,
}

impl StateSchema {
    /// The schema in which every key replaces.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The schema with a reducer for one key more.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, reducer: impl Reducer + 'static) -> Self {
        self.reducers.insert(key.into(), Arc::new(reducer));
        self
    }

    /// A new state: the existing keys, then each update key through its reducer.
    ///
    /// # Panics
    /// When a reducer function of the caller's panics.
    #[must_use]
    pub fn apply_update(&self, existing: &State, update: State) -> State {
        let mut state = existing.clone();
        state.apply(&self.patches(existing, update));
        state
    }

    /// The patches that `update` makes on `existing`, in the order of the keys.
    ///
    /// # Panics
    /// When a reducer function of the caller's panics.
    #[must_use]
    pub fn patches(
        &self,
        existing: &State,
        update: impl IntoIterator<Item = (String, Value)>,
    ) -> Vec<Patch> {
        let patch = |(key, value): (String, Value)| {
            let op = self.reduce(&key, existing.get(&key), value);
            Patch { key, op }
        };
        update.into_iter().map(patch).collect()
    }

    /// The change that `update` makes to one key.
    pub(crate) fn reduce(&self, key: &str, existing: Option<&Value>, update: Value) -> PatchOp {
        match self.reducers.get(key) {
            Some(reducer) => reducer.reduce(existing, update),
            None => ReplaceReducer.reduce(existing, update),
        }
    }

    /// The keys with a reducer of their own, and its name, in order.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.reducers.iter().map(|(key, reducer)| (key.as_str(), reducer.name()))
    }

    /// Takes over the reducers of `inner`, whose keys `rename` turns into ours. Ours win; returns
    /// the keys for which ours is another one.
    pub(crate) fn adopt(&mut self, inner: &Self, rename: impl Fn(&str) -> String) -> Vec<String> {
        let mut differing = Vec::new();
        for (key, reducer) in &inner.reducers {
            let key = rename(key);
            match self.reducers.get(&key) {
                Some(ours) if ours.name() != reducer.name() => differing.push(key),
                Some(_) => {}
                None => {
                    self.reducers.insert(key, Arc::clone(reducer));
                }
            }
        }
        differing
    }
}

impl fmt::Debug for StateSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.names()).finish()
    }
}
