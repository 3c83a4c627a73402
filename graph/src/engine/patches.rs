//! From a node's update to patches: keys through their reducers, limits checked, no-ops left out.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::Engine;
use crate::{
    END, Node, NodeError, Patch, PatchOp, Progress, Routing, State, TaskRef, Update,
    json::check_depth_below, limits::STATE_BYTES_MAX, state::json_len, update::Writes,
};

impl Engine {
    /// The patches of an update and its goto, if it has one.
    pub(super) fn patches(
        &self,
        progress: &Progress,
        node: &Node,
        task: &TaskRef,
        update: Update,
    ) -> Result<(Vec<Patch>, Option<Routing>), NodeError> {
        if let Some((code, why)) = update.fault {
            return Err(NodeError::permanent(why).with_code(code.as_str()));
        }
        let goto = update.goto.map(|targets| Self::goto(node, &targets)).transpose()?;
        if goto.is_none() && self.graph.edges_from(&task.node).is_empty() {
            let text = "the node has no edges and returned no goto";
            return Err(NodeError::permanent(text));
        }
        let empty = State::new();
        let state = progress.state_at(&task.branch).unwrap_or(&empty);
        let make = || self.write(node, state, update.writes);
        let patches = catch_unwind(AssertUnwindSafe(make)).map_err(|panic| {
            let text = crate::panic_text(&*panic);
            NodeError::permanent(format!("a reducer panicked: {text}"))
        })?;
        check_limits(state, &patches)?;
        Ok((patches, goto))
    }

    fn goto(node: &Node, targets: &[String]) -> Result<Routing, NodeError> {
        let declared = &node.options.goto;
        let target = |said: &String| {
            declared.iter().find(|goto| goto.said == *said).map(|goto| goto.target.as_str())
        };
        let undeclared = |said: &String| {
            let names: Vec<&str> = declared.iter().map(|goto| goto.said.as_str()).collect();
            let names = names.join(", ");
            NodeError::permanent(format!("goto {said:?} is not among the targets [{names}]"))
        };
        let mut found = targets.iter().map(|said| target(said).ok_or_else(|| undeclared(said)));
        let first = found.next().unwrap_or(Ok(END))?;
        match found.find(|other| !matches!(other, Ok(other) if *other == first)) {
            None => Ok(Routing::To(first.to_owned())),
            Some(other) => Err(NodeError::permanent(format!(
                "goto {first:?} and goto {:?}: a node goes on at one place; to go on at several \
                 give it a route that answers a list",
                other?
            ))),
        }
    }

    /// The routing to some declared targets: one is no fork, a double counts once.
    pub(super) fn fork_or_one(&self, targets: &[&str]) -> Routing {
        let mut distinct: Vec<&str> = Vec::new();
        for target in targets {
            if !distinct.contains(target) {
                distinct.push(target);
            }
        }
        match distinct.as_slice() {
            [] => Routing::To(END.to_owned()),
            [one] => Routing::To((*one).to_owned()),
            several => Routing::Fork(self.graph.inner.dominators.fork(several)),
        }
    }

    fn write(&self, node: &Node, state: &State, writes: Writes) -> Vec<Patch> {
        match writes {
            Writes::Keys { set, unset } => {
                let schema = self.graph.schema();
                let reduce = |(key, value): (String, Value)| {
                    let key = node.view.outer(&key);
                    let op = schema.reduce(&key, state.get(&key), value);
                    Patch { key, op }
                };
                let gone =
                    unset.iter().map(|key| Patch { key: node.view.outer(key), op: PatchOp::Unset });
                let all = set.into_iter().map(reduce).chain(gone);
                all.filter(|patch| changes(state, patch)).collect()
            }
            Writes::Whole { state: new, is_complete } => {
                let seen = state.keys().filter_map(|key| Some((key, node.view.inner(key)?)));
                let gone: Vec<Patch> = seen
                    .filter(|(_, inner)| is_complete && !new.contains_key(*inner))
                    .map(|(key, _)| Patch { key: key.clone(), op: PatchOp::Unset })
                    .collect();
                let set = new.into_iter().map(|(key, value)| {
                    let key = node.view.outer(&key);
                    Patch { key, op: PatchOp::Set(value) }
                });
                set.chain(gone).filter(|patch| changes(state, patch)).collect()
            }
        }
    }
}

/// Whether a patch is a write: setting a key to what it is, is none.
fn changes(state: &State, patch: &Patch) -> bool {
    match &patch.op {
        PatchOp::Set(value) => state.get(&patch.key) != Some(value),
        PatchOp::Unset => state.contains_key(&patch.key),
        PatchOp::Append(items) => !items.is_empty() || !state.contains_key(&patch.key),
        PatchOp::Merge(entries) => !entries.is_empty() || !state.contains_key(&patch.key),
        PatchOp::Reduced { .. } => true,
    }
}

/// Refuses what could be written and never read again, or what is too large.
pub(super) fn check_limits(state: &State, patches: &[Patch]) -> Result<(), NodeError> {
    let mut added = 0;
    for Patch { key, op } in patches {
        added += key.len() + 4;
        added += match op {
            PatchOp::Set(value) | PatchOp::Reduced { result: value, .. } => {
                deep(value, 2, || key.clone())?;
                json_len(value)
            }
            PatchOp::Append(items) => {
                for (index, item) in items.iter().enumerate() {
                    deep(item, 3, || format!("{key}[{index}]"))?;
                }
                items.iter().map(|item| json_len(item) + 1).sum::<usize>() + 2
            }
            PatchOp::Merge(entries) => {
                for (name, entry) in entries {
                    deep(entry, 3, || format!("{key}.{}", crate::printable(name, 40)))?;
                }
                entries.iter().map(|(k, v)| k.len() + 4 + json_len(v)).sum::<usize>() + 2
            }
            PatchOp::Unset => 0,
        };
    }
    // The sum is an upper bound; the exact size is asked for only when it could matter.
    let bound = state.json_len() + added;
    if bound > STATE_BYTES_MAX {
        let mut after = state.clone();
        after.apply(patches);
        let size = after.json_len();
        if size > STATE_BYTES_MAX {
            let largest = after.iter().max_by_key(|(_, value)| json_len(value));
            let key = largest.map(|(key, _)| key.as_str()).unwrap_or_default();
            let text = format!(
                "the state would have {size} bytes, the limit is {STATE_BYTES_MAX}; the largest \
                 key is {key:?}"
            );
            return Err(NodeError::permanent(text).with_code("E_TOO_LARGE"));
        }
    }
    Ok(())
}

/// The state's own object is level 1, so the value of a key stands at level 2.
fn deep(value: &Value, level: usize, place: impl Fn() -> String) -> Result<(), NodeError> {
    check_depth_below(value, level)
        .map_err(|fault| NodeError::permanent(fault.within(&place())).with_code("E_DEPTH"))
}
