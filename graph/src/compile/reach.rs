//! What can be reached from where.

use std::collections::{BTreeMap, BTreeSet};

use crate::{BranchStart, END};

/// The nodes from `start` on, up to `stop`, which is not among them; the end never is.
pub(super) fn reach<'a>(
    successors: &BTreeMap<&'a str, Vec<&'a str>>,
    start: &'a str,
    stop: Option<&str>,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![start];
    while let Some(node) = next.pop() {
        if Some(node) != stop && reached.insert(node) {
            next.extend(successors.get(node).into_iter().flatten());
        }
    }
    if start != END {
        reached.remove(END);
    }
    reached
}

pub(super) fn branch_nodes<'a>(
    branch: &'a BranchStart,
    join: &str,
    successors: &BTreeMap<&'a str, Vec<&'a str>>,
) -> BTreeSet<&'a str> {
    match branch {
        BranchStart::Join => BTreeSet::new(),
        BranchStart::Node { node, .. } => reach(successors, node, Some(join)),
        BranchStart::Fork(inner) => {
            let own = inner.branches.iter().flat_map(|b| branch_nodes(b, &inner.join, successors));
            own.chain(reach(successors, &inner.join, Some(join))).collect()
        }
    }
}
