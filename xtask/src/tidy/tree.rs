//! The text files of the repository, in memory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 3] = [".git", "target", "bench-work"];

/// All text files by their path from the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads everything under `root` that is text.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files as (path, text), sorted by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files under `folder` whose name ends with `end`.
    pub(crate) fn under<'a>(
        &'a self,
        folder: &'a str,
        end: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.starts_with(folder) && path.ends_with(end))
    }

    /// The Rust sources.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.under("", ".rs")
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let entries = folder.read_dir().with_context(|| format!("failed to list {prefix:?}"))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("failed to list {prefix:?}"))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type().with_context(|| format!("failed to look at {path}"))?;
            if kind.is_dir() && !FOREIGN.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                self.read_file(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, file: &Path, path: String) -> Result<()> {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            // Gone since the folder was listed: a temporary file of a tool or a test.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("failed to read {path}")),
        };
        // What is not UTF-8 is no text, and the rules are about texts.
        if let Ok(text) = String::from_utf8(bytes) {
            self.files.insert(path, text);
        }
        Ok(())
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        let owned = |(path, text): (&str, &str)| (path.to_owned(), text.to_owned());
        Self { files: files.into_iter().map(owned).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::root;

    #[test]
    fn reads_hidden_folders_but_no_build_output() {
        let tree = Tree::read(root()).unwrap();
        assert!(tree.text(".cargo/config.toml").is_some());
        assert!(tree.text("xtask/src/main.rs").is_some());
        assert!(!tree.files().any(|(path, _)| path.starts_with("target/")));
    }
}
