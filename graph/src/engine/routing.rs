//! Where a run goes on after a node: edges, or the answer of a route.

use super::Engine;
use crate::{
    Answered, BranchStart, END, Edge, Fork, Progress, Routing, Send, State, TaskRef,
    compile::ask,
    limits::{FORK_DEPTH_MAX, FORK_WIDTH_MAX},
};

impl Engine {
    /// The routing behind a node whose patches are applied. Asks the route, if it has one.
    pub(super) fn route(&self, progress: &Progress, task: &TaskRef) -> Routing {
        let empty = State::new();
        let state = progress.state_at(&task.branch).unwrap_or(&empty);
        let edges = self.graph.edges_from(&task.node);
        let routing = match edges {
            [Edge::Route { ask: route, targets, .. }] => {
                let answer = ask(route, state);
                answer.and_then(|answer| self.answered(answer, targets))
            }
            plain => {
                let targets = plain.iter().flat_map(Edge::targets).map(String::as_str);
                Ok(self.fork_or_one(&targets.collect::<Vec<_>>()))
            }
        };
        self.checked(progress, task, routing)
    }

    /// The routing, if the run can go there; the node's update is kept in any case.
    pub(super) fn checked(
        &self,
        progress: &Progress,
        task: &TaskRef,
        routing: Result<Routing, String>,
    ) -> Routing {
        let routing = routing.and_then(|routing| match &routing {
            Routing::Fork(fork) if task.branch.len() + depth(fork) > FORK_DEPTH_MAX => {
                let depth = task.branch.len() + depth(fork);
                Err(format!("the fork is {depth} forks deep, the limit is {FORK_DEPTH_MAX}"))
            }
            Routing::Fork(fork) if fork.branches.len() > FORK_WIDTH_MAX => Err(format!(
                "the fork would have {} branches, the limit is {FORK_WIDTH_MAX}",
                fork.branches.len()
            )),
            Routing::To(node) if node == END => match progress.join_around(&task.branch) {
                Some(END) | None => Ok(routing),
                Some(join) => Err(format!("it ends the run inside a fork that joins at {join:?}")),
            },
            Routing::Fork(_) | Routing::To(_) | Routing::Unresolved(_) => Ok(routing),
        });
        routing.unwrap_or_else(|why| {
            Routing::Unresolved(format!("the route of {:?}: {why}", task.node))
        })
    }

    fn answered(&self, answer: Answered, targets: &[String]) -> Result<Routing, String> {
        let known = |said: &str| {
            let said = if said.is_empty() { END } else { said };
            targets.iter().map(String::as_str).find(|target| *target == said).ok_or_else(|| {
                let said = crate::printable(said, 80);
                format!("it answered {said:?}, which is not among its targets {targets:?}")
            })
        };
        match answer {
            Answered::One(node) => known(&node).map(|node| Routing::To(node.to_owned())),
            Answered::Many(nodes) if nodes.is_empty() => Ok(self.sends(vec![], targets)),
            Answered::Many(nodes) => {
                let found: Result<Vec<&str>, String> = nodes.iter().map(|n| known(n)).collect();
                Ok(self.fork_or_one(&found?))
            }
            Answered::Sends(sends) => {
                let send = |send: Send| match known(&send.node)? {
                    END => Err("a Send cannot go to the end".to_owned()),
                    node => Ok((node.to_owned(), send.input?)),
                };
                let sends: Result<Vec<_>, String> = sends.into_iter().map(send).collect();
                Ok(self.sends(sends?, targets))
            }
        }
    }

    fn sends(
        &self,
        sends: Vec<(String, serde_json::Map<String, serde_json::Value>)>,
        targets: &[String],
    ) -> Routing {
        let declared: Vec<&str> =
            targets.iter().map(String::as_str).filter(|target| *target != END).collect();
        let fork = self.graph.inner.dominators.send_fork(sends, &declared);
        match fork.branches.is_empty() {
            true => Routing::To(fork.join),
            false => Routing::Fork(fork),
        }
    }
}

/// How many forks lie inside one another, this one included.
fn depth(fork: &Fork) -> usize {
    let inner = fork.branches.iter().map(|branch| match branch {
        BranchStart::Fork(inner) => depth(inner),
        BranchStart::Node { .. } | BranchStart::Join => 0,
    });
    1 + inner.max().unwrap_or(0)
}
