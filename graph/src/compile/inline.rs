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
    if inner.id().as_str() == outer.id {
        outer.faults.push(GraphFault::new(
            "subgraph_cycle",
            prefix,
            format!("the graph {:?} contains itself", outer.id),
            "give the inner graph an id of its own, or use a cycle of edges",
        ));
    }
    let under = |id: &str| if id == END { exit_of(prefix) } else { format!("{prefix}/{id}") };
    for node in inner.nodes() {
        let mut node = Node {
            id: under(&node.id),
            options: node.options.clone(),
            run: node.run.clone(),
            view: node.view.under(mapping),
        };
        node.options.title.get_or_insert_with(|| node.id.clone());
        for goto in &mut node.options.goto {
            goto.target = under(&goto.target);
        }
        node.options.gate = node.options.gate.map(|gate| Gate {
            name: format!("{prefix}/{}", gate.name),
            reject_to: gate.reject_to.as_deref().map(under),
            question: gate.question,
        });
        outer.nodes.push(node);
    }
    for (from, edges) in &inner.inner.edges {
        let view = KeyView::default().under(mapping);
        let edges = edges.iter().map(|edge| (under(from), edge_under(edge, prefix, &view)));
        outer.edges.extend(edges);
    }
    outer.schema.adopt(inner.schema(), |key| mapping.outer(key).to_owned());
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

/// The open end of a sub-graph, until it is tied to the outer edges.
fn exit_of(prefix: &str) -> String {
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

/// Ties the open ends of sub-graphs to the edges that leave them, and edges that lead to a
/// sub-graph to its entry. Innermost prefixes come last, so ends that meet pass outwards.
pub(crate) fn tie_exits(mut graph: StateGraph) -> StateGraph {
    let mut prefixes: Vec<(String, Cluster)> = graph.clusters.clone().into_iter().collect();
    prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    for (prefix, cluster) in &prefixes {
        let leaves = |(from, _): &(String, Edge)| from == prefix;
        let (leaving, staying): (Vec<_>, Vec<_>) = graph.edges.into_iter().partition(leaves);
        graph.edges = staying;
        let exit = exit_of(prefix);
        let leaving: Vec<Edge> = leaving.into_iter().map(|(_, edge)| edge).collect();
        let single = match leaving.as_slice() {
            [Edge::Plain { to }] => Some(to.clone()),
            [] | [Edge::Route { .. }] | [_, _, ..] => None,
        };
        match single {
            Some(to) => redirect(&mut graph, &exit, &to),
            // Several edges or a route: the open end becomes a router that holds them.
            None if is_target(&graph, &exit) && !leaving.is_empty() => {
                let id = format!("{prefix}/exit");
                redirect(&mut graph, &exit, &id);
                graph = graph.add_router(id.clone());
                graph.edges.extend(leaving.into_iter().map(|edge| (id.clone(), edge)));
            }
            None => {}
        }
        redirect(&mut graph, prefix, &cluster.entry);
        for entry in &mut graph.entries {
            if entry == prefix {
                entry.clone_from(&cluster.entry);
            }
        }
    }
    graph
}

fn is_target(graph: &StateGraph, node: &str) -> bool {
    graph.edges.iter().any(|(_, edge)| edge.targets().iter().any(|to| to == node))
        || graph.nodes.iter().any(|n| {
            n.options.goto.iter().any(|goto| goto.target == node)
                || n.gate().and_then(Gate::rejection) == Some(node)
        })
}

/// Makes everything that leads to `old` lead to `new`.
fn redirect(graph: &mut StateGraph, old: &str, new: &str) {
    let moved = |to: &mut String| {
        if to == old {
            new.clone_into(to);
        }
    };
    for (_, edge) in &mut graph.edges {
        match edge {
            Edge::Plain { to } => moved(to),
            Edge::Route { ask, targets, .. } => {
                if targets.iter().any(|to| to == old) {
                    targets.iter_mut().for_each(moved);
                    *ask = redirected(Arc::clone(ask), old.to_owned(), new.to_owned());
                }
            }
        }
    }
    for node in &mut graph.nodes {
        node.options.goto.iter_mut().for_each(|goto| moved(&mut goto.target));
        if let Some(target) = node.options.gate.as_mut().and_then(|gate| gate.reject_to.as_mut()) {
            moved(target);
        }
    }
}

fn redirected(ask: EdgeCondition, old: String, new: String) -> EdgeCondition {
    let moved = move |node: String| if node == old { new.clone() } else { node };
    Arc::new(move |state| match ask(state) {
        Answered::One(node) => Answered::One(moved(node)),
        Answered::Many(nodes) => Answered::Many(nodes.into_iter().map(&moved).collect()),
        Answered::Sends(sends) => {
            let send = |send: Send| Send { node: moved(send.node), input: send.input };
            Answered::Sends(sends.into_iter().map(send).collect())
        }
    })
}

/// Asks a route; a panic in it is its failure.
pub(crate) fn ask(route: &EdgeCondition, state: &State) -> Result<Answered, String> {
    catch_unwind(AssertUnwindSafe(|| route(state)))
        .map_err(|panic| format!("the route panicked: {}", crate::panic_text(&*panic)))
}
