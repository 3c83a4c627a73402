//! The ledger: what fixture nodes say about each time they ran, independent of any store.
//!
//! Every node of the fixtures program appends one line when it starts and one right before it
//! returns, with a single synced write.
//! So the ledger tells how often an effect really happened, whatever the journal claims.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::lines::complete_lines;

/// The effect that a node writes when it begins.
const START: &str = "start";
/// The effect that a node writes right before it returns.
const DONE: &str = "done";

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LedgerEntry {
    /// The run in which the node ran.
    pub run: String,
    /// The session of that run.
    pub session: String,
    /// The graph of that run.
    pub graph: String,
    /// The node, with the prefix of its sub-graph if it has one.
    pub node: String,
    /// Which visit of the node in this run it is.
    pub visit: u64,
    /// Which attempt of that visit it is.
    pub attempt: u64,
    /// The epoch of the lease under which the node ran.
    pub epoch: u64,
    /// `start`, `done`, or the name of an effect of the node's own.
    pub effect: String,
    /// The process that wrote the line.
    pub pid: u32,
    /// When, as the writer saw it: RFC 3339, UTC.
    pub at: String,
}

/// A ledger file, read afresh by every question.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger in the file `path`, which need not exist yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path to hand to programs in `HOLDPOINT_LEDGER`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All complete lines in the order in which they were written; none when there is no file.
    ///
    /// A torn last line does not count: its writer was killed before the write had ended.
    ///
    /// # Panics
    ///
    /// When the file cannot be read, or a complete line is no ledger entry.
    #[must_use]
    pub fn entries(&self) -> Vec<LedgerEntry> {
        let text = match std::fs::read(&self.path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => panic!("cannot read the ledger {}: {error}", self.path.display()),
        };
        complete_lines(&text, "the ledger")
    }

    /// How often `effect` of `node` happened in `run`.
    #[must_use]
    pub fn count(&self, run: &str, node: &str, effect: &str) -> usize {
        let is_it = |e: &LedgerEntry| e.run == run && e.node == node && e.effect == effect;
        self.entries().into_iter().filter(is_it).count()
    }

    /// How often `node` started, over all runs.
    #[must_use]
    pub fn starts(&self, node: &str) -> usize {
        self.count_everywhere(node, START)
    }

    /// How often `node` came to its end, over all runs.
    #[must_use]
    pub fn done(&self, node: &str) -> usize {
        self.count_everywhere(node, DONE)
    }

    /// The nodes of `run` that came to their end, in that order; a repeated node is repeated.
    #[must_use]
    pub fn nodes_in_order(&self, run: &str) -> Vec<String> {
        let ended = |e: &LedgerEntry| e.run == run && e.effect == DONE;
        self.entries().into_iter().filter(ended).map(|entry| entry.node).collect()
    }

    fn count_everywhere(&self, node: &str, effect: &str) -> usize {
        self.entries().into_iter().filter(|e| e.node == node && e.effect == effect).count()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;
    use crate::Scratch;

    fn line(run: &str, node: &str, effect: &str) -> String {
        let who = format!(r#""run":"{run}","session":"s","graph":"lin","node":"{node}""#);
        let when = r#""pid":42,"at":"2026-01-02T03:04:05.678Z""#;
        format!(r#"{{{who},"visit":0,"attempt":1,"epoch":7,"effect":"{effect}",{when}}}"#)
    }

    fn append(ledger: &Ledger, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(ledger.path()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_missing_file_is_an_empty_ledger() {
        let scratch = Scratch::new();
        assert!(scratch.ledger().entries().is_empty());
        assert_eq!(scratch.ledger().count("r", "a", "done"), 0);
    }

    #[test]
    fn counts_tell_runs_nodes_and_effects_apart() {
        let scratch = Scratch::new();
        let ledger = scratch.ledger();
        let lines = [
            line("r1", "a", "start"),
            line("r1", "a", "done"),
            line("r2", "a", "start"),
            line("r1", "b", "start"),
            line("r1", "b", "decide"),
            line("r1", "b", "start"),
            line("r1", "b", "done"),
        ];
        append(&ledger, &(lines.join("\n") + "\n"));
        assert_eq!(ledger.count("r1", "b", "start"), 2);
        assert_eq!(ledger.count("r1", "b", "decide"), 1);
        assert_eq!(ledger.starts("a"), 2);
        assert_eq!(ledger.done("a"), 1);
        assert_eq!(ledger.nodes_in_order("r1"), ["a", "b"]);
        assert!(ledger.nodes_in_order("r2").is_empty());
        assert_eq!(ledger.entries()[0].epoch, 7);
    }

    /// A writer killed inside its write leaves half a line; the reader must neither count it nor
    /// stumble over it.
    #[test]
    fn a_torn_last_line_does_not_count_at_any_length() {
        let whole = line("r", "a", "start") + "\n";
        let torn = line("r", "a", "done");
        for end in 0..=torn.len() {
            let scratch = Scratch::new();
            let ledger = scratch.ledger();
            append(&ledger, &whole);
            append(&ledger, &torn[..end]);
            assert_eq!(ledger.starts("a"), 1, "cut at {end}");
            assert_eq!(ledger.done("a"), 0, "cut at {end}");
        }
    }
}
