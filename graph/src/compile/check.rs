//! The rules of a graph, each collecting its faults; one pass reports them all.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    BranchStart, END, Edge, Fork, Gate, GraphFault, StateGraph,
    compile::{
        Dominators, nearest,
        reach::{branch_nodes, reach},
    },
    event::START,
    gate::{check_answer, compiled},
    id::check_id,
    limits::{EDGES_MAX, NODES_MAX},
};

/// What the check found, and what it computed on the way.
pub(crate) struct Checked {
    pub(crate) faults: Vec<GraphFault>,
    pub(crate) warnings: Vec<GraphFault>,
    pub(crate) dominators: Dominators,
}

pub(crate) fn check(graph: &StateGraph) -> Checked {
    let mut check = Check::new(graph);
    check.faults.extend(graph.faults.iter().cloned());
    check.warnings.extend(graph.warnings.iter().cloned());
    check.limits();
    // To look for more in a graph that is too large would take long and help nobody.
    let is_too_large = check.faults.len() > graph.faults.len();
    let dominators = if is_too_large { Dominators::of(&BTreeMap::new()) } else { check.all() };
    Checked { faults: check.faults, warnings: check.warnings, dominators }
}

struct Check<'a> {
    graph: &'a StateGraph,
    known: BTreeSet<&'a str>,
    faults: Vec<GraphFault>,
    warnings: Vec<GraphFault>,
}

impl<'a> Check<'a> {
    fn new(graph: &'a StateGraph) -> Self {
        let known = graph.nodes.iter().map(|node| node.id.as_str()).collect();
        Self { graph, known, faults: Vec::new(), warnings: Vec::new() }
    }

    fn fault(&mut self, code: &'static str, node: &str, message: String, fix: impl Into<String>) {
        self.faults.push(GraphFault::new(code, node, message, fix));
    }

    /// Everything but the limits; gives what the joins are found by.
    fn all(&mut self) -> Dominators {
        self.ids();
        self.entry();
        self.edges();
        self.exits();
        self.gates();
        let successors = self.successors();
        self.reachable(&successors);
        let dominators = Dominators::of(&successors);
        self.reaches_end(&successors);
        self.joins(&successors, &dominators);
        self.case();
        dominators
    }

    fn limits(&mut self) {
        let nodes = self.graph.nodes.len();
        if nodes > NODES_MAX {
            let message = format!("the graph has {nodes} nodes, the limit is {NODES_MAX}");
            self.fault("limit", &self.graph.id, message, "split it, or loop over a list");
        }
        let targets = |(_, edge): &(String, Edge)| edge.targets().len();
        let edges: usize = self.graph.edges.iter().map(targets).sum();
        if edges > EDGES_MAX {
            let message = format!("the graph has {edges} edges, the limit is {EDGES_MAX}");
            self.fault("limit", &self.graph.id, message, "split it, or use fewer targets");
        }
    }

    fn ids(&mut self) {
        if let Err(why) = check_id(&self.graph.id) {
            self.fault("bad_id", &self.graph.id, format!("the graph's id {why}"), "rename it");
        }
        let mut seen = BTreeSet::new();
        for node in &self.graph.nodes {
            let id = node.id.as_str();
            if id == START || id == END {
                let message = "the id is reserved".to_owned();
                self.fault("reserved_id", id, message, "choose another id");
            } else if let Some(why) = self.bad_node_id(id) {
                self.fault("bad_id", id, format!("the id {why}"), "rename the node");
            }
            if !seen.insert(id) {
                let message = "two nodes have this id".to_owned();
                self.fault("duplicate_id", id, message, "give each its own id");
            }
            if self.graph.clusters.contains_key(id) {
                let message = "a node and a sub-graph have this id".to_owned();
                self.fault("duplicate_id", id, message, "give each its own id");
            }
        }
    }

    /// Why a node's id is none. Only inlined nodes have a `/`, behind their sub-graph's id.
    fn bad_node_id(&self, id: &str) -> Option<String> {
        let (prefix, name) = match id.rsplit_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, id),
        };
        if prefix.is_some_and(|prefix| !self.graph.clusters.contains_key(prefix)) {
            return Some(format!("{id:?} has a '/', which only sub-graphs put there"));
        }
        check_id(name).err()
    }

    fn entry(&mut self) {
        let graph = self.graph;
        let Some(first) = graph.entries.first() else {
            let message = "no entry is set".to_owned();
            return self.fault("no_entry", &graph.id, message, "call set_entry_point(node)");
        };
        for entry in &graph.entries {
            if !self.known.contains(entry.as_str()) {
                let fix = self.suggest(entry);
                self.fault("unknown_entry", entry, "the entry is no node".to_owned(), fix);
            }
            if entry != first {
                let message = format!("the entry is {first:?} already");
                self.fault("two_entries", entry, message, "keep one set_entry_point");
            }
        }
    }

    fn edges(&mut self) {
        let graph = self.graph;
        let mut plain: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (from, edge) in &graph.edges {
            if !self.known.contains(from.as_str()) {
                let fix = self.suggest(from);
                self.fault("unknown_source", from, "an edge leaves no node".to_owned(), fix);
            }
            for to in edge.targets() {
                self.target(from, to, "an edge");
            }
            match edge {
                Edge::Plain { to } if to == from => {
                    let message = "an edge leads from the node to itself".to_owned();
                    let fix = "use add_conditional_edge with a way out";
                    self.fault("self_edge", from, message, fix);
                }
                Edge::Plain { to } if !plain.insert((from, to)) => {
                    let message = format!("the edge to {to:?} stands twice");
                    self.fault("duplicate_edge", from, message, "keep one of them");
                }
                Edge::Plain { .. } => {}
                Edge::Route { targets, .. } => {
                    let distinct: BTreeSet<&String> = targets.iter().collect();
                    if targets.is_empty() {
                        let message = "a route declares no targets".to_owned();
                        self.fault("no_targets", from, message, "name every node it may answer");
                    } else if distinct.len() < targets.len() {
                        let message = "a route declares a target twice".to_owned();
                        self.fault("duplicate_target", from, message, "name each target once");
                    }
                }
            }
        }
        for node in &graph.nodes {
            for goto in &node.options.goto {
                self.target(&node.id, &goto.target, "a goto");
            }
        }
    }

    fn target(&mut self, from: &str, to: &str, what: &str) {
        if to != END && !self.known.contains(to) {
            let fix = self.suggest(to);
            self.fault("unknown_target", from, format!("{what} leads to {to:?}, no node"), fix);
        }
    }

    fn suggest(&self, name: &str) -> String {
        if name == START {
            return "the entry is set by set_entry_point".to_owned();
        }
        let clusters = self.graph.clusters.keys().map(String::as_str);
        match nearest(name, self.known.iter().copied().chain(clusters)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "add the node".to_owned(),
        }
    }

    /// Each node has one kind of way out.
    fn exits(&mut self) {
        let graph = self.graph;
        let mut by_source: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (from, edge) in &graph.edges {
            let (plain, routes) = by_source.entry(from).or_default();
            match edge {
                Edge::Plain { .. } => *plain += 1,
                Edge::Route { .. } => *routes += 1,
            }
        }
        for node in &graph.nodes {
            let (plain, routes) = by_source.get(node.id.as_str()).copied().unwrap_or_default();
            if plain > 0 && routes > 0 {
                let message = "the node has a route and plain edges".to_owned();
                let fix = "make the edges targets of the route";
                self.fault("route_and_edge", &node.id, message, fix);
            }
            if routes > 1 {
                let message = format!("the node has {routes} routes");
                self.fault("two_routes", &node.id, message, "make one route of them");
            }
            if plain + routes == 0 && node.options.goto.is_empty() {
                let message = "the node has no way out".to_owned();
                let fix = format!("call set_finish_point({:?}) or add an edge", node.id);
                self.fault("dead_end", &node.id, message, fix);
            }
        }
    }

    fn gates(&mut self) {
        let graph = self.graph;
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for node in &graph.nodes {
            let Some(gate) = node.gate() else { continue };
            if !names.insert(gate.name()) {
                let message = format!("two gates are called {:?}", gate.name());
                self.fault("duplicate_gate", &node.id, message, "give each its own name");
            }
            if let Some(why) = self.bad_node_id(gate.name()) {
                self.fault("bad_id", &node.id, format!("the gate's name {why}"), "rename it");
            }
            if let Some(target) = gate.rejection() {
                self.target(&node.id, target, "the gate's rejection");
            }
            self.gate_schema(&node.id, gate);
        }
    }

    fn gate_schema(&mut self, node: &str, gate: &Gate) {
        let Some(schema) = gate.question().answer_schema() else { return };
        if let Err(fault) = compiled(schema) {
            self.fault("bad_schema", node, fault.to_string(), "mend the gate's schema");
        } else if let Some(answer) = gate.question().default_answer()
            && let Err(fault) = check_answer(Some(schema), answer)
        {
            let message = format!("the gate's answer at its deadline: {fault}");
            self.fault("bad_default", node, message, "give an answer that fits the schema");
        }
    }

    fn successors(&self) -> BTreeMap<&'a str, Vec<&'a str>> {
        let mut all: BTreeMap<&str, Vec<&str>> =
            self.graph.nodes.iter().map(|node| (node.id.as_str(), Vec::new())).collect();
        for (from, edge) in &self.graph.edges {
            if let Some(list) = all.get_mut(from.as_str()) {
                list.extend(edge.targets().iter().map(String::as_str));
            }
        }
        for node in &self.graph.nodes {
            if let Some(list) = all.get_mut(node.id.as_str()) {
                list.extend(node.options.goto.iter().map(|goto| goto.target.as_str()));
                list.extend(node.gate().and_then(Gate::rejection));
            }
        }
        all
    }

    fn reachable(&mut self, successors: &BTreeMap<&str, Vec<&str>>) {
        let Some(entry) = self.graph.entries.first() else { return };
        let reached = reach(successors, entry, None);
        for node in &self.graph.nodes {
            if !reached.contains(node.id.as_str()) && self.known.contains(entry.as_str()) {
                let message = "nothing leads to the node".to_owned();
                let fix = "add an edge to it, declare it as a target, or remove it";
                self.fault("unreachable", &node.id, message, fix);
            }
        }
    }

    /// A cycle is legal when there is a way out of it. Ways that lead to another fault (a node
    /// with no way out, a target that is none) are not reported twice.
    fn reaches_end(&mut self, successors: &BTreeMap<&str, Vec<&str>>) {
        let mut before: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, targets) in successors {
            for to in targets {
                before.entry(to).or_default().push(from);
                if !successors.contains_key(to) && *to != END {
                    before.entry(END).or_default().push(to);
                }
            }
            if targets.is_empty() {
                before.entry(END).or_default().push(from);
            }
        }
        let ending = reach(&before, END, None);
        for (node, targets) in successors {
            if !targets.is_empty() && !ending.contains(node) {
                let message = "no way leads from the node to the end".to_owned();
                let fix =
                    "give the cycle an exit: a route with a target outside, or a finish point";
                self.fault("no_exit", node, message, fix);
            }
        }
    }

    fn joins(&mut self, successors: &BTreeMap<&str, Vec<&str>>, dominators: &Dominators) {
        let mut forks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, edge) in &self.graph.edges {
            match edge {
                Edge::Plain { to } => forks.entry(from).or_default().push(to),
                Edge::Route { targets, is_fan: true, .. } => {
                    forks.entry(from).or_default().extend(targets.iter().map(String::as_str));
                }
                Edge::Route { is_fan: false, .. } => {}
            }
        }
        for (from, targets) in forks {
            // Joins are known only where every way leads to the end.
            if targets.len() > 1 && targets.iter().all(|target| dominators.knows(target)) {
                self.ambiguous(from, &dominators.fork(&targets), successors);
            }
        }
    }

    /// No node before the join may belong to two branches.
    fn ambiguous(&mut self, from: &str, fork: &Fork, successors: &BTreeMap<&str, Vec<&str>>) {
        let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
        let mut shared: BTreeSet<&str> = BTreeSet::new();
        for (index, branch) in fork.branches.iter().enumerate() {
            for node in branch_nodes(branch, &fork.join, successors) {
                if *owners.entry(node).or_insert(index) != index {
                    shared.insert(node);
                }
            }
            if let BranchStart::Fork(inner) = branch {
                self.ambiguous(from, inner, successors);
            }
        }
        for node in shared {
            let message = format!(
                "two branches of the fork at {from:?} may come to the node, but they join at {:?}",
                fork.join
            );
            let fix = format!(
                "let every way of those branches pass {node:?}, or give each branch its own node"
            );
            self.fault("ambiguous_join", node, message, fix);
        }
    }

    fn case(&mut self) {
        let mut folded: BTreeMap<String, &str> = BTreeMap::new();
        for id in &self.known {
            if let Some(other) = folded.insert(id.to_lowercase(), id) {
                let message = format!("the id differs from {other:?} only in case");
                let fix = "rename one of them, so that nobody takes one for the other";
                self.warnings.push(GraphFault::new("similar_ids", *id, message, fix));
            }
        }
    }
}
