//! Who may depend on whom: ARCHITECTURE.md against the manifests.
//!
//! The document holds two fenced blocks, each line of which is `NAME -> NAME NAME ...`.
//! In the block `edges` the left side is a crate of ours and the right side all of our crates
//! that it may link.
//! In the block `homes` the left side is a foreign package and the right side all of our crates
//! that may link it; a package without a line may be linked anywhere.
//! Dev-dependencies are free.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::{Fault, numbered};
use super::manifest::{self, Manifest};
use super::tree::Tree;

const DOCUMENT: &str = "ARCHITECTURE.md";
const WORKSPACE: &str = "Cargo.toml";
/// The members that are never shipped, so they may link what else only tests may.
const TOOLS: [&str; 3] = ["bench", "torture", "xtask"];

/// All manifests against the document, and the document against itself.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let document = tree.text(DOCUMENT).unwrap_or_default();
    let (manifests, mut faults) = manifests(tree);
    match (Block::parse(document, "edges"), Block::parse(document, "homes")) {
        (Ok(edges), Ok(homes)) => {
            let names = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
            faults.extend(consistency(&edges, &homes, &names));
            for manifest in &manifests {
                faults.extend(links(manifest, &edges, &homes));
            }
        }
        (edges, homes) => faults.extend(edges.err().into_iter().chain(homes.err())),
    }
    faults
}

/// The manifests of all members, and the faults of those that cannot be read.
fn manifests(tree: &Tree) -> (Vec<Manifest>, Vec<Fault>) {
    let (mut manifests, mut faults) = (Vec::new(), Vec::new());
    let members = tree.text(WORKSPACE).and_then(manifest::members);
    if members.is_none() {
        faults.push(Fault::new(WORKSPACE, 1, "no members", "list them under `[workspace]`"));
    }
    for path in members.unwrap_or_default() {
        match manifest::parse(&path, tree.text(&path).unwrap_or_default()) {
            Ok(manifest) => manifests.push(manifest),
            Err(fault) => faults.push(fault),
        }
    }
    (manifests, faults)
}

/// A fenced block: the right side by the left side, each with its line in the document.
#[derive(Debug)]
struct Block {
    line: usize,
    rows: BTreeMap<String, (usize, BTreeSet<String>)>,
}

impl Block {
    fn parse(document: &str, name: &str) -> Result<Self, Fault> {
        let head = format!("```{name}");
        let mut lines = numbered(document).skip_while(|(_, line)| *line != head);
        let Some((line, _)) = lines.next() else {
            let fix = "write the fenced block; xtask/src/tidy/edges.rs has its grammar";
            return Err(Fault::new(DOCUMENT, 1, format!("no block `{name}`"), fix));
        };
        let mut rows = BTreeMap::new();
        for (number, row) in lines.take_while(|(_, line)| *line != "```") {
            let Some((left, right)) = row.split_once("->") else {
                let what = format!("cannot read `{row}`");
                return Err(Fault::new(DOCUMENT, number, what, "write `NAME -> NAME NAME`"));
            };
            let right = right.split_whitespace().map(str::to_owned).collect();
            rows.insert(left.trim().to_owned(), (number, right));
        }
        Ok(Self { line, rows })
    }

    fn right(&self, left: &str) -> Option<&BTreeSet<String>> {
        self.rows.get(left).map(|(_, right)| right)
    }
}

/// The links of one member that the document does not allow.
fn links(manifest: &Manifest, edges: &Block, homes: &Block) -> Vec<Fault> {
    let name = &manifest.name;
    let mut faults = Vec::new();
    for dependency in &manifest.dependencies {
        let other = &dependency.name;
        let mut blame = |what: String, fix| {
            faults.push(Fault::new(&manifest.path, dependency.line, what, fix));
        };
        let may_link = edges.right(name).is_some_and(|allowed| allowed.contains(other));
        if dependency.is_ours && other == "testkit" && !TOOLS.contains(&name.as_str()) {
            let fix = "move it to `[dev-dependencies]`";
            blame(format!("{name} links testkit, which only tests may use"), fix);
        } else if dependency.is_ours && !may_link {
            let fix = "turn the dependency around, or record a decision and add the edge";
            blame(format!("ARCHITECTURE.md has no edge {name} -> {other}"), fix);
        } else if !dependency.is_ours && !homes.right(other).is_none_or(|at| at.contains(name)) {
            let fix = "use it through the crate that ARCHITECTURE.md calls its home";
            blame(format!("{other} has no home in {name}"), fix);
        }
    }
    faults
}

/// The document names exactly the members, and its edges make no circle.
fn consistency(edges: &Block, homes: &Block, members: &BTreeSet<&str>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut blame = |line, what, fix| faults.push(Fault::new(DOCUMENT, line, what, fix));
    for name in members.iter().filter(|name| !edges.rows.contains_key(**name)) {
        blame(edges.line, format!("no row for {name}"), "say what it may link, if only nothing");
    }
    let fix = "delete it, or add the member to the workspace";
    for (left, (line, right)) in &edges.rows {
        for name in right.iter().chain([left]).filter(|name| !members.contains(name.as_str())) {
            blame(*line, format!("{name} is no member"), fix);
        }
        if reaches(edges, right, left) {
            blame(*line, format!("{left} reaches itself"), "break the circle");
        }
    }
    for (line, right) in homes.rows.values() {
        for name in right.iter().filter(|name| !members.contains(name.as_str())) {
            blame(*line, format!("{name} is no member"), fix);
        }
    }
    faults
}

/// Whether the edges lead from one of `from` to `goal`.
fn reaches(edges: &Block, from: &BTreeSet<String>, goal: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = from.iter().collect();
    while let Some(name) = open.pop() {
        if name == goal {
            return true;
        }
        if seen.insert(name) {
            open.extend(edges.right(name).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests;
