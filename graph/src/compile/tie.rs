//! Ties sub-graphs to the graph around them, once that is whole.

use std::sync::Arc;

use super::inline::exit_of;
use crate::{Answered, END, Edge, EdgeCondition, GraphFault, Send, StateGraph, builder::Cluster};

/// Ties the open ends of sub-graphs to the edges that leave them, and edges that lead to a
/// sub-graph to its entry. Innermost prefixes come last, so ends that meet pass outwards.
pub(super) fn tie_exits(mut graph: StateGraph) -> StateGraph {
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
            None if !is_target(&graph, &exit) => {}
            None if leaving.is_empty() => {
                redirect(&mut graph, &exit, END);
                graph.faults.push(GraphFault::new(
                    "dead_end",
                    prefix,
                    "the sub-graph has no way out",
                    format!("call set_finish_point({prefix:?}) or add an edge"),
                ));
            }
            None => {
                let id = free_id(&graph, prefix);
                redirect(&mut graph, &exit, &id);
                graph = graph.add_router(id.clone());
                graph.edges.extend(leaving.into_iter().map(|edge| (id.clone(), edge)));
            }
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

/// The id of a router that nothing else has.
fn free_id(graph: &StateGraph, prefix: &str) -> String {
    let is_taken =
        |id: &String| graph.clusters.contains_key(id) || graph.nodes.iter().any(|n| n.id == *id);
    let ids = std::iter::once(format!("{prefix}/exit"));
    let mut ids = ids.chain((2..).map(|n: u32| format!("{prefix}/exit-{n}")));
    ids.find(|id| !is_taken(id)).unwrap_or_default()
}

fn is_target(graph: &StateGraph, node: &str) -> bool {
    graph.edges.iter().any(|(_, edge)| edge.targets().iter().any(|to| to == node))
        || graph.nodes.iter().any(|n| {
            n.options.goto.iter().any(|goto| goto.target == node)
                || n.gate().is_some_and(|gate| gate.routes().iter().any(|(_, to)| to == node))
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
        let routes = node.options.gate.iter_mut().flat_map(|gate| gate.routes.iter_mut());
        routes.for_each(|(_, target)| moved(target));
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
