//! Inlining of sub-graphs: their nodes become ours under a prefix, their ends lead to our edges.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::{
    Answered, CompiledGraph, END, Edge, EdgeCondition, Gate, GraphFault, KeyMapping, Node, Send,
    State, StateGraph, builder::Cluster, view::KeyView,
};

/// Adds the nodes of `inner` under `prefix/`. Where the inner graph ended stays open until the
/// whole graph is compiled: the exits then lead to the outer edges of `prefix`.
pub(crate) fn inline(
    mut outer: StateGraph,
    prefix: &str,
    inner: &CompiledGraph,
    mapping: &KeyMapping,
) -> StateGraph {
    if let Some(key) = mapping.doubled() {
        outer.faults.push(GraphFault::new(
            "doubled_key",
            prefix,
            format!("the key {key:?} stands twice in the mapping"),
            "map each key once",
        ));
    }
    let contains = inner.subgraphs().any(|(_, graph)| graph == outer.id);
    if inner.id().as_str() == outer.id || contains {
        outer.faults.push(GraphFault::new(
            "subgraph_cycle",
            prefix,
            format!("the graph {:?} contains itself", outer.id),
            "give the inner graph an id of its own, or use a cycle of edges",
        ));
    }
    let mapping = &mapping.closed(prefix);
    let under = |id: &str| if id == END { exit_of(prefix) } else { format!("{prefix}/{id}") };
    for node in inner.nodes() {
        let mut node = Node {
            id: under(&node.id),
            options: node.options.clone(),
            run: node.run.clone(),
            view: node.view.under(mapping),
        };
        for goto in &mut node.options.goto {
            goto.target = under(&goto.target);
        }
        node.options.gate = node.options.gate.map(|gate| Gate {
            name: format!("{prefix}/{}", gate.name),
            routes: gate.routes.iter().map(|(choice, to)| (choice.clone(), under(to))).collect(),
            question: gate.question,
        });
        outer.nodes.push(node);
    }
    for (from, edges) in &inner.inner.edges {
        let view = KeyView::default().under(mapping);
        let edges = edges.iter().map(|edge| (under(from), edge_under(edge, prefix, &view)));
        outer.edges.extend(edges);
    }
    let differing = outer.schema.adopt(inner.schema(), |key| mapping.outer(key).to_owned());
    outer.warnings.extend(differing.iter().map(|key| two_reducers(key)));
    for (name, cluster) in &inner.inner.clusters {
        let cluster = Cluster { entry: under(&cluster.entry), ..cluster.clone() };
        outer.clusters.insert(format!("{prefix}/{name}"), cluster);
    }
    let cluster = Cluster { entry: under(inner.entry()), graph: inner.id().to_string() };
    if outer.clusters.insert(prefix.to_owned(), cluster).is_some() {
        outer.faults.push(GraphFault::new(
            "duplicate_id",
            prefix,
            "two sub-graphs have this id",
            "give each its own id",
        ));
    }
    outer
}

/// One key, two reducers: of the graph and of a sub-graph, or of two sub-graphs.
pub(crate) fn two_reducers(key: &str) -> GraphFault {
    GraphFault::new(
        "two_reducers",
        key,
        "the graph and its sub-graphs declare different reducers for the key; the first counts",
        "declare the same one, or map the key to another name",
    )
}

/// The open end of a sub-graph, until it is tied to the outer edges.
pub(super) fn exit_of(prefix: &str) -> String {
    format!("{prefix}/{END}")
}

fn edge_under(edge: &Edge, prefix: &str, view: &KeyView) -> Edge {
    let under = |id: &str| if id == END { exit_of(prefix) } else { format!("{prefix}/{id}") };
    match edge {
        Edge::Plain { to } => Edge::Plain { to: under(to) },
        Edge::Route { ask, targets, is_fan } => {
            let (ask, prefix, view) = (Arc::clone(ask), prefix.to_owned(), view.clone());
            let ask: EdgeCondition =
                Arc::new(move |state: &State| rename(ask(&view.inside(state)), &prefix, &view));
            let targets = targets.iter().map(|target| under(target)).collect();
            Edge::Route { ask, targets, is_fan: *is_fan }
        }
    }
}

fn rename(answer: Answered, prefix: &str, view: &KeyView) -> Answered {
    let under = |id: String| match id.as_str() {
        "" | END => exit_of(prefix),
        id => format!("{prefix}/{id}"),
    };
    match answer {
        Answered::One(node) => Answered::One(under(node)),
        Answered::Many(nodes) => Answered::Many(nodes.into_iter().map(under).collect()),
        Answered::Sends(sends) => {
            let send = |send: Send| Send {
                node: under(send.node),
                input: send.input.map(|input| {
                    input.into_iter().map(|(key, value)| (view.outer(&key), value)).collect()
                }),
            };
            Answered::Sends(sends.into_iter().map(send).collect())
        }
    }
}

/// Asks a route; a panic in it is its failure.
pub(crate) fn ask(route: &EdgeCondition, state: &State) -> Result<Answered, String> {
    catch_unwind(AssertUnwindSafe(|| route(state)))
        .map_err(|panic| format!("the route panicked: {}", crate::panic_text(&*panic)))
}
