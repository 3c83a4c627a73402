//! Checked ids: a value of one of these types is an id that every store and URL can carry.
//!
//! The alphabet has no `:`, `/` or brace, so that ids never collide when keys are built from them.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Code, Refusal, limits::ID_BYTES_MAX};

/// An id of one kind: 1 to 128 characters of `A-Z a-z 0-9 . _ ~ @ -`, the first a letter or digit.
///
/// ```
/// use holdpoint_graph::RunId;
/// assert!(RunId::new("order-17").is_ok());
/// assert!(RunId::new("../etc").is_err());
/// ```
pub struct Id<K> {
    text: Arc<str>,
    kind: PhantomData<fn() -> K>,
}

/// What an id names; used in messages.
pub trait Kind {
    /// The noun, as in "run id".
    const NOUN: &'static str;
}

/// A graph's id.
pub type GraphId = Id<kind::Graph>;
/// A run's id.
pub type RunId = Id<kind::Run>;
/// A session's id: the lineage that a run belongs to.
pub type SessionId = Id<kind::Session>;
/// A queue's name.
pub type QueueId = Id<kind::Queue>;
/// A worker's id, new with every process.
pub type WorkerId = Id<kind::Worker>;
/// The id of one opening of one question.
pub type InterruptId = Id<kind::Interrupt>;
/// An idempotency key.
pub type KeyId = Id<kind::Key>;
/// The id of one mutating call, kept over its repeats.
pub type RequestId = Id<kind::Request>;
/// A namespace: part of every key of a store.
pub type Namespace = Id<kind::Namespace>;

/// The kinds of ids.
pub mod kind {
    use super::Kind;

    /// Marks a graph's id.
    #[derive(Debug)]
    pub enum Graph {}
    /// Marks a run's id.
    #[derive(Debug)]
    pub enum Run {}
    /// Marks a session's id.
    #[derive(Debug)]
    pub enum Session {}
    /// Marks a queue's name.
    #[derive(Debug)]
    pub enum Queue {}
    /// Marks a worker's id.
    #[derive(Debug)]
    pub enum Worker {}
    /// Marks an interrupt's id.
    #[derive(Debug)]
    pub enum Interrupt {}
    /// Marks an idempotency key.
    #[derive(Debug)]
    pub enum Key {}
    /// Marks a request's id.
    #[derive(Debug)]
    pub enum Request {}
    /// Marks a namespace.
    #[derive(Debug)]
    pub enum Namespace {}

    impl Kind for Graph {
        const NOUN: &'static str = "graph";
    }
    impl Kind for Run {
        const NOUN: &'static str = "run";
    }
    impl Kind for Session {
        const NOUN: &'static str = "session";
    }
    impl Kind for Queue {
        const NOUN: &'static str = "queue";
    }
    impl Kind for Worker {
        const NOUN: &'static str = "worker";
    }
    impl Kind for Interrupt {
        const NOUN: &'static str = "interrupt";
    }
    impl Kind for Key {
        const NOUN: &'static str = "key";
    }
    impl Kind for Request {
        const NOUN: &'static str = "request";
    }
    impl Kind for Namespace {
        const NOUN: &'static str = "namespace";
    }
}

impl<K: Kind> Id<K> {
    /// Checks the text and makes the id.
    ///
    /// # Errors
    /// `E_ID` with the text and the rule it breaks.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Refusal> {
        let text = text.as_ref();
        check_id(text).map_err(|why| Refusal::new(Code::Id, K::NOUN, why))?;
        Ok(Self { text: Arc::from(text), kind: PhantomData })
    }
}

impl<K> Id<K> {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Says why `text` is no id, or nothing when it is one.
pub(crate) fn check_id(text: &str) -> Result<(), String> {
    let shown = || crate::shown(text, 40);
    if text.is_empty() {
        return Err("is empty; an id has 1 to 128 characters".to_owned());
    }
    if text.len() > ID_BYTES_MAX {
        return Err(format!("{} has {} bytes, an id at most {ID_BYTES_MAX}", shown(), text.len()));
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(format!("{} does not begin with a letter or a digit", shown()));
    }
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !"._~@-".contains(*c)) {
        None => Ok(()),
        Some(c) => Err(format!("{} has {c:?}; an id is made of A-Z a-z 0-9 . _ ~ @ -", shown())),
    }
}

impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), kind: PhantomData }
    }
}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}
impl<K> std::hash::Hash for Id<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl<K> AsRef<str> for Id<K> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}
impl<K: Kind> std::str::FromStr for Id<K> {
    type Err = Refusal;
    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::new(text)
    }
}
impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}
