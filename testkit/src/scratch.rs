//! A folder per test, and the addresses of the things in it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Ledger;

/// A temporary folder that is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Makes a new, empty folder.
    ///
    /// # Panics
    ///
    /// When the system refuses the folder.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default value should not write to the disk")]
    pub fn new() -> Self {
        Self { folder: temp_folder() }
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of `name` inside the folder; nothing is created.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The URL of this folder's SQLite store; the store itself creates the file.
    #[must_use]
    pub fn sqlite_url(&self) -> String {
        format!("sqlite:{}", self.file("holdpoint.db").display())
    }

    /// This folder's ledger; it is empty until a program writes to its path.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::at(self.file("ledger.jsonl"))
    }
}

/// A temporary folder with a path short enough for a Unix socket in it.
///
/// The kernel allows such a path 107 bytes, so a deep `TMPDIR` is passed over for `/tmp`.
pub(crate) fn temp_folder() -> TempDir {
    let parent = std::env::temp_dir();
    let parent = if parent.as_os_str().len() > 60 { Path::new("/tmp") } else { &parent };
    tempfile::Builder::new()
        .prefix("holdpoint-")
        .tempdir_in(parent)
        .unwrap_or_else(|error| panic!("no temporary folder in {}: {error}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_away_with_the_value() {
        let scratch = Scratch::new();
        let path = scratch.path().to_owned();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_sqlite_url_points_into_the_folder() {
        let scratch = Scratch::new();
        let url = scratch.sqlite_url();
        let path = Path::new(url.strip_prefix("sqlite:").unwrap());
        assert_eq!(path.parent().unwrap(), scratch.path());
        assert!(!path.exists());
    }
}
