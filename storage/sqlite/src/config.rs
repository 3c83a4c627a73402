//! What a store is opened with.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use holdpoint_graph::Namespace;
use holdpoint_storage::{Durability, SharedClock, SystemClock};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct SqliteConfig {
    /// Where the data is.
    pub location: Location,
    /// The namespace; one file may hold several, which do not see each other.
    pub namespace: Namespace,
    /// What an acknowledgement means. Default: [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// The store's clock. Default: the host's.
    pub clock: SharedClock,
    /// How long to wait for another process that writes. Default: 2 s, so that a caller with a
    /// patience of 5 s hears of the lock and not of its own impatience.
    pub busy_timeout: Duration,
    /// Whether a missing file is created; its folder never is. Default: true.
    pub create_if_missing: bool,
}

impl SqliteConfig {
    /// The defaults.
    #[must_use]
    pub fn new(location: Location, namespace: Namespace) -> Self {
        Self {
            location,
            namespace,
            synchronous: Synchronous::Full,
            clock: Arc::new(SystemClock),
            busy_timeout: Duration::from_secs(2),
            create_if_missing: true,
        }
    }

    /// What an acknowledgement reaches.
    pub(crate) const fn durability(&self) -> Durability {
        match (&self.location, self.synchronous) {
            (Location::File(_), Synchronous::Full) => Durability::Fsynced,
            (Location::File(_), Synchronous::Normal) | (Location::Memory, _) => {
                Durability::Buffered
            }
        }
    }
}

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this file, which several processes of one host may share.
    File(PathBuf),
    /// In the memory of the process: gone with the last handle.
    Memory,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str("memory"),
        }
    }
}

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// It survives a power cut: the disk has confirmed it.
    #[default]
    Full,
    /// It survives the end of the process; a power cut may take the last seconds.
    Normal,
}

impl Synchronous {
    /// The word that SQLite knows it by.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}
