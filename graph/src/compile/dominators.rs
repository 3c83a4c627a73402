//! Post-dominators: which node every way from a node to the end must pass, and the joins of forks.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::{
    algo::dominators::simple_fast,
    graph::{DiGraph, NodeIndex},
};

use crate::{BranchStart, END, Fork};

/// The tree of nearest post-dominators; its root is the end.
#[derive(Debug, Default)]
pub(crate) struct Dominators {
    parent: BTreeMap<String, String>,
}

impl Dominators {
    /// Computes the tree. Nodes that cannot reach the end are not in it.
    pub(crate) fn of<'a>(successors: &BTreeMap<&'a str, Vec<&'a str>>) -> Self {
        let mut graph: DiGraph<&str, ()> = DiGraph::new();
        let mut index: BTreeMap<&str, NodeIndex> = BTreeMap::new();
        for node in successors.keys().copied().chain([END]) {
            index.insert(node, graph.add_node(node));
        }
        for (from, targets) in successors {
            for to in targets {
                if let (Some(from), Some(to)) = (index.get(from), index.get(to)) {
                    // Reversed: dominators of the reversed graph are post-dominators.
                    graph.update_edge(*to, *from, ());
                }
            }
        }
        let Some(end) = index.get(END) else { return Self::default() };
        let tree = simple_fast(&graph, *end);
        let name = |index: NodeIndex| graph.node_weight(index).map(|name| (*name).to_owned());
        let parent = index.iter().filter_map(|(node, index)| {
            Some(((*node).to_owned(), name(tree.immediate_dominator(*index)?)?))
        });
        Self { parent: parent.collect() }
    }

    /// The node and its post-dominators up to the end.
    fn chain<'a>(&'a self, node: &'a str) -> Vec<&'a str> {
        let next = |node: &&'a str| self.parent.get(*node).map(String::as_str);
        std::iter::successors(Some(node), next).collect()
    }

    /// The nearest node that all ways from both must pass, themselves included.
    pub(crate) fn common<'a>(&'a self, a: &'a str, b: &'a str) -> &'a str {
        let theirs: BTreeSet<&str> = self.chain(b).into_iter().collect();
        self.chain(a).into_iter().find(|node| theirs.contains(node)).unwrap_or(END)
    }

    fn parent_of<'a>(&'a self, node: &'a str) -> &'a str {
        self.parent.get(node).map_or(END, String::as_str)
    }

    /// The fork that begins at several different targets: branches in order, and those that meet
    /// before the others do as forks of their own.
    pub(crate) fn fork(&self, targets: &[&str]) -> Fork {
        let starts = targets.iter().map(|target| {
            let start = BranchStart::Node { node: (*target).to_owned(), input: None };
            (*target, start)
        });
        self.group(starts.collect())
    }

    /// The fork of a list of sends. A target never is the join itself, since it is to run.
    pub(crate) fn send_fork(
        &self,
        sends: Vec<(String, serde_json::Map<String, serde_json::Value>)>,
        declared: &[&str],
    ) -> Fork {
        let exits = sends.iter().map(|(node, _)| self.parent_of(node));
        let exits: Vec<&str> = match sends.is_empty() {
            true => declared.iter().map(|node| self.parent_of(node)).collect(),
            false => exits.collect(),
        };
        let mut rest = exits.iter().copied();
        let first = rest.next().unwrap_or(END);
        let join = rest.fold(first, |a, b| self.common(a, b)).to_owned();
        let branch = |(node, input)| BranchStart::Node { node, input: Some(input) };
        Fork { join, branches: sends.into_iter().map(branch).collect() }
    }

    fn group(&self, starts: Vec<(&str, BranchStart)>) -> Fork {
        let names: Vec<&str> = starts.iter().map(|(name, _)| *name).collect();
        let mut rest = names.iter().copied();
        let first = rest.next().unwrap_or(END);
        let join = rest.fold(first, |a, b| self.common(a, b)).to_owned();
        // Branches whose nearest common node lies before the join meet there first.
        let mut groups: Vec<Vec<(&str, BranchStart)>> = Vec::new();
        for (name, start) in starts {
            let meets_early = |group: &Vec<(&str, BranchStart)>| {
                let other = group.first().map_or(END, |(other, _)| *other);
                name != join && other != join && self.common(name, other) != join
            };
            match groups.iter_mut().find(|group| meets_early(group)) {
                Some(group) => group.push((name, start)),
                None => groups.push(vec![(name, start)]),
            }
        }
        let branches = groups.into_iter().map(|mut group| match group.as_slice() {
            [(name, _)] if *name == join => BranchStart::Join,
            [_] => group.remove(0).1,
            _ => BranchStart::Fork(self.group(group)),
        });
        Fork { branches: branches.collect(), join }
    }
}
