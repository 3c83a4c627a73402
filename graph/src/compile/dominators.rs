//! Post-dominators: which node every way from a node to the end must pass, and the joins of forks.

use std::collections::{BTreeMap, btree_map::Entry};

use petgraph::{
    algo::dominators::simple_fast,
    graph::{DiGraph, NodeIndex},
};

use crate::{BranchStart, END, Fork};

/// The tree of nearest post-dominators; its root is the end.
#[derive(Debug, Default)]
pub(crate) struct Dominators {
    parent: BTreeMap<String, String>,
    depth: BTreeMap<String, usize>,
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
        let parent: BTreeMap<String, String> = parent.collect();
        let depth = depths(&parent);
        Self { parent, depth }
    }

    /// Whether the end can be reached from `node`.
    pub(crate) fn knows(&self, node: &str) -> bool {
        node == END || self.parent.contains_key(node)
    }

    /// The nearest node that all ways from both must pass, themselves included.
    pub(crate) fn common<'a>(&'a self, mut a: &'a str, mut b: &'a str) -> &'a str {
        let depth = |node: &str| self.depth.get(node).copied().unwrap_or(0);
        while a != b {
            match depth(a) < depth(b) {
                true => b = self.parent_of(b),
                false if a == END => return END,
                false => a = self.parent_of(a),
            }
        }
        a
    }

    /// The nearest node that all ways from all of them must pass.
    fn common_of<'a>(&'a self, mut nodes: impl Iterator<Item = &'a str>) -> &'a str {
        let first = nodes.next().unwrap_or(END);
        nodes.fold(first, |a, b| self.common(a, b))
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

    /// The fork of a list of sends. A target never is the join itself, since it is to run; an
    /// empty list leads straight to where the declared targets meet.
    pub(crate) fn send_fork(
        &self,
        sends: Vec<(String, serde_json::Map<String, serde_json::Value>)>,
        declared: &[&str],
    ) -> Fork {
        if sends.is_empty() {
            let join = match declared {
                [one] => self.parent_of(one),
                several => self.common_of(several.iter().copied()),
            };
            return Fork { join: join.to_owned(), branches: Vec::new() };
        }
        let exits: Vec<String> =
            sends.iter().map(|(node, _)| self.parent_of(node).to_owned()).collect();
        let start = |(node, input)| BranchStart::Node { node, input: Some(input) };
        let starts = exits.iter().map(String::as_str).zip(sends.into_iter().map(start));
        self.group(starts.collect())
    }

    /// Each start stands with the first node that all of its branch must come to, at which it
    /// may meet others: the target itself, or what is behind a send.
    fn group(&self, starts: Vec<(&str, BranchStart)>) -> Fork {
        let join = self.common_of(starts.iter().map(|(at, _)| *at)).to_owned();
        // Branches whose nearest common node lies before the join meet there first.
        let mut groups: Vec<Vec<(&str, BranchStart)>> = Vec::new();
        let mut early: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, start) in starts {
            match self.last_before(at, &join).map(|last| early.entry(last)) {
                Some(Entry::Occupied(group)) => {
                    if let Some(group) = groups.get_mut(*group.get()) {
                        group.push((at, start));
                    }
                }
                Some(Entry::Vacant(slot)) => {
                    slot.insert(groups.len());
                    groups.push(vec![(at, start)]);
                }
                None => groups.push(vec![(at, start)]),
            }
        }
        let branches = groups.into_iter().map(|mut group| match group.as_slice() {
            [(at, BranchStart::Node { node, input: None })] if *at == join && *node == join => {
                BranchStart::Join
            }
            [_] => group.remove(0).1,
            _ => BranchStart::Fork(self.group(group)),
        });
        Fork { branches: branches.collect(), join }
    }

    /// The last node before `join` that all ways from `node` must pass: branches that share it
    /// meet before the join.
    fn last_before<'a>(&'a self, node: &'a str, join: &str) -> Option<&'a str> {
        let mut last = None;
        let mut at = node;
        while at != join {
            last = Some(at);
            if at == END {
                return None;
            }
            at = self.parent_of(at);
        }
        last
    }
}

/// How far each node is from the end, the tree's root. Without recursion: chains are long.
fn depths(parent: &BTreeMap<String, String>) -> BTreeMap<String, usize> {
    let mut depth: BTreeMap<String, usize> = BTreeMap::from([(END.to_owned(), 0)]);
    for node in parent.keys() {
        let mut above = Vec::new();
        let mut at = node;
        let found = loop {
            if let Some(found) = depth.get(at) {
                break *found;
            }
            above.push(at);
            match parent.get(at) {
                Some(next) => at = next,
                None => break 0,
            }
        };
        for (far, node) in (found + 1..).zip(above.into_iter().rev()) {
            depth.insert(node.clone(), far);
        }
    }
    depth
}
