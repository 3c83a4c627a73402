//! `cargo xtask tidy`: the rules of the tree that no compiler and no lint knows.
//!
//! A rule is a pure function over paths and texts that answers with faults; this module reads the
//! tree, asks every rule and reports all faults at once.
//! STYLE.md says why each rule is there.

use anyhow::{Result, bail};

use crate::command::root;

mod assets;
mod documents;
mod edges;
mod fault;
mod lock;
mod manifest;
mod rust;
mod sizes;
mod tree;
mod words;

use fault::Fault;
use tree::Tree;

/// Checks the repository.
pub(crate) fn run() -> Result<()> {
    let faults = faults(&Tree::read(root())?);
    if faults.is_empty() {
        eprintln!("xtask: the tree is tidy");
        return Ok(());
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    bail!("the tree has {} faults", faults.len())
}

/// All faults, by path and line.
fn faults(tree: &Tree) -> Vec<Fault> {
    let rules: [fn(&Tree) -> Vec<Fault>; 7] = [
        words::check,
        rust::check,
        sizes::check,
        assets::check,
        documents::check,
        edges::check,
        lock::check,
    ];
    let mut faults: Vec<Fault> = rules.iter().flat_map(|rule| rule(tree)).collect();
    faults.sort();
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let faults = faults(&Tree::read(root()).unwrap());
        let list = faults.iter().map(|fault| format!("{fault}\n")).collect::<String>();
        assert!(faults.is_empty(), "{} faults:\n{list}", faults.len());
    }
}
