//! Long files, held in check by a list that can only get shorter.

use std::collections::BTreeMap;

use super::fault::{Fault, numbered};
use super::tree::Tree;

/// The most lines a Rust source may have without an entry in the list.
const LINES_MAX: usize = 400;
/// The list: one `PATH LINES` per line, `#` before a comment.
const LIST: &str = "xtask/long-files.txt";

/// Every source is short enough or listed, and every entry of the list is still needed.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let lengths = tree.rust().map(|(path, text)| (path, text.lines().count())).collect();
    let Some(list) = tree.text(LIST) else {
        return vec![Fault::new(LIST, 1, "the list is missing", "create it; it may be empty")];
    };
    let mut faults = entries(list, &lengths);
    faults.extend(unlisted(list, &lengths));
    faults
}

/// The faults of the list itself.
fn entries(list: &str, lengths: &BTreeMap<&str, usize>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, line) in numbered(list).filter(|(_, line)| is_entry(line)) {
        let mut blame = |what: String, fix| faults.push(Fault::new(LIST, number, what, fix));
        let Some((path, max)) = parse(line) else {
            blame(format!("cannot read `{line}`"), "write `PATH LINES`");
            continue;
        };
        match lengths.get(path) {
            None => blame(format!("{path} does not exist"), "delete the entry"),
            Some(&lines) if lines <= LINES_MAX => {
                blame(format!("{path} has only {lines} lines now"), "delete the entry");
            }
            Some(&lines) if lines > max => {
                let what = format!("{path} has grown to {lines} lines from {max}");
                blame(what, "move something out; the list may only shrink");
            }
            Some(_) => {}
        }
    }
    faults
}

/// The long files that the list does not have.
fn unlisted(list: &str, lengths: &BTreeMap<&str, usize>) -> Vec<Fault> {
    let listed: Vec<&str> = list.lines().filter_map(parse).map(|(path, _)| path).collect();
    let is_fault = |(path, lines): &(&&str, &usize)| **lines > LINES_MAX && !listed.contains(*path);
    let fault = |(path, lines): (&&str, &usize)| {
        let what = format!("{lines} lines, {LINES_MAX} are allowed");
        Fault::new(path, *lines, what, "split it by theme")
    };
    lengths.iter().filter(is_fault).map(fault).collect()
}

fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

fn parse(line: &str) -> Option<(&str, usize)> {
    let (path, lines) = line.trim().split_once(' ')?;
    (is_entry(line)).then_some((path, lines.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_sizes(list: &str, lines: usize, expect: &[&str]) {
        let source = "\n".repeat(lines);
        let faults = check(&Tree::from([(LIST, list), ("a/src/b.rs", &source)]));
        let whats: Vec<String> = faults.into_iter().map(|fault| fault.what).collect();
        assert_eq!(whats, expect, "{list:?} {lines}");
    }

    #[test]
    fn short_files_need_no_entry() {
        check_sizes("# a comment\n\n", 400, &[]);
        check_sizes("", 401, &["401 lines, 400 are allowed"]);
    }

    #[test]
    fn an_entry_is_a_ratchet() {
        check_sizes("a/src/b.rs 500\n", 500, &[]);
        check_sizes("a/src/b.rs 500\n", 450, &[]);
        check_sizes("a/src/b.rs 500\n", 501, &["a/src/b.rs has grown to 501 lines from 500"]);
        check_sizes("a/src/b.rs 500\n", 400, &["a/src/b.rs has only 400 lines now"]);
        check_sizes("a/src/c.rs 500\n", 1, &["a/src/c.rs does not exist"]);
        check_sizes("a/src/b.rs\n", 1, &["cannot read `a/src/b.rs`"]);
    }

    #[test]
    fn the_list_must_be_there() {
        assert_eq!(check(&Tree::default()).len(), 1);
    }
}
