//! What a node returns: an update of the state, perhaps with a `goto`.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Code, State, strict};

/// What a node returns. Every key goes through its reducer.
///
/// ```
/// use holdpoint_graph::Update;
/// let update = Update::new().set("total", 12).goto("ship");
/// # let _ = update;
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    pub(crate) writes: Writes,
    pub(crate) goto: Option<Vec<String>>,
    pub(crate) fault: Option<(Code, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Writes {
    /// Keys through their reducers, and keys that go away.
    Keys { set: Map<String, Value>, unset: Vec<String> },
    /// A whole state: changed keys are set, unchanged ones are no writes. `is_complete` says
    /// whether a key that is missing goes away.
    Whole { state: Map<String, Value>, is_complete: bool },
}

impl Default for Writes {
    fn default() -> Self {
        Self::Keys { set: Map::new(), unset: Vec::new() }
    }
}

impl Update {
    /// The empty update.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `value` through the reducer of `key`. A value that JSON cannot hold (a float that is
    /// not finite) makes the node fail with the path, when it returns.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Serialize) -> Self {
        let key = key.into();
        match strict::to_value(&value) {
            Ok(value) => match &mut self.writes {
                Writes::Keys { set, unset } => {
                    unset.retain(|gone| *gone != key);
                    set.insert(key, value);
                }
                Writes::Whole { state, .. } => {
                    state.insert(key, value);
                }
            },
            Err(why) => {
                let fault = (why.code(), format!("{key}{why}"));
                self.fault = self.fault.or(Some(fault));
            }
        }
        self
    }

    /// Takes `key` out of the state.
    #[must_use]
    pub fn unset(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        match &mut self.writes {
            Writes::Keys { set, unset } => {
                set.remove(&key);
                unset.push(key);
            }
            Writes::Whole { state, .. } => {
                state.remove(&key);
            }
        }
        self
    }

    /// Goes on at `node`, one of the declared goto targets, in place of the node's edges.
    /// A second, other target is the node's error: only a route can fork.
    #[must_use]
    pub fn goto(mut self, node: impl Into<String>) -> Self {
        self.goto.get_or_insert_default().push(node.into());
        self
    }

    /// A whole state: changed keys are set, unchanged keys are no writes, missing ones go away.
    #[must_use]
    pub fn whole(state: State) -> Self {
        let state = state.into_iter().collect();
        Self { writes: Writes::Whole { state, is_complete: true }, ..Self::default() }
    }

    /// A typed part of the state: changed keys are set, unchanged ones are no writes, keys that
    /// the type does not have stay.
    #[must_use]
    pub fn part(value: &impl Serialize) -> Self {
        let fault = match strict::to_value(value) {
            Ok(Value::Object(state)) => {
                let writes = Writes::Whole { state, is_complete: false };
                return Self { writes, ..Self::default() };
            }
            Ok(other) => {
                let other = crate::printable(&other.to_string(), 80);
                (Code::Type, format!("the update is no object but {other}"))
            }
            Err(why) => (why.code(), format!("the update{why}")),
        };
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// What a node function may return.
pub trait IntoUpdate {
    /// The update.
    fn into_update(self) -> Update;
}

impl IntoUpdate for Update {
    fn into_update(self) -> Update {
        self
    }
}

impl IntoUpdate for State {
    fn into_update(self) -> Update {
        Update::whole(self)
    }
}

impl IntoUpdate for () {
    fn into_update(self) -> Update {
        Update::new()
    }
}
