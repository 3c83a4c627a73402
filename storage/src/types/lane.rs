//! Lanes, times and durability: the small words that several calls share.

use holdpoint_graph::{Fingerprint, GraphId, QueueId, fingerprint::of_parts};
use serde::{Deserialize, Serialize};

/// What an acknowledgement reached. Nothing promises more than this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the store's memory or the system's cache: a power cut may lose it.
    Buffered,
    /// On the store's disk.
    Fsynced,
    /// On a replica's disk or memory too.
    Replicated,
}

impl Durability {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buffered => "buffered",
            Self::Fsynced => "fsynced",
            Self::Replicated => "replicated",
        }
    }
}

/// The ready queue of one (queue, graph, fingerprint or any).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The queue.
    pub queue: QueueId,
    /// The graph.
    pub graph: GraphId,
    /// The structure that the run is pinned to; none before its first claim.
    pub fingerprint: Option<Fingerprint>,
}

impl Lane {
    /// The lane's name in keys: 16 characters.
    #[must_use]
    pub fn name(&self) -> String {
        let fingerprint = self.fingerprint.as_ref().map_or("", Fingerprint::as_str);
        let mut name = of_parts(&["lane", self.queue.as_str(), self.graph.as_str(), fingerprint]);
        name.truncate(16);
        name
    }
}

/// A time, as a caller gives it: the store's clock decides what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many ms after the store's now.
    In(i64),
    /// At this time, in ms since 1970.
    At(i64),
}

impl When {
    /// The time, given the store's now.
    #[must_use]
    pub const fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::In(ms) => now_ms.saturating_add(ms),
            Self::At(ms) => ms,
        }
    }
}
