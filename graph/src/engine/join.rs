//! Joins: the branches' writes, in branch order, through the reducers. Never a matter of timing.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde_json::Value;

use super::{Engine, patches::check_limits};
use crate::{
    Event, Patch, PatchOp, Progress, Reason, ReasonCode, State, StateSchema,
    progress::{Branch, Flow, ForkState},
};

impl Engine {
    /// The innermost fork whose branches have all arrived, joined.
    pub(super) fn join(&self, progress: &Progress) -> Option<Result<Event, Reason>> {
        let mut branch = Vec::new();
        let fork = arrived(progress.flow(), &mut branch)?;
        let empty = State::new();
        let base = progress.state_at(&branch).unwrap_or(&empty);
        let merge = || merged(self.graph.schema(), base, fork);
        let merged = catch_unwind(AssertUnwindSafe(merge)).unwrap_or_else(|panic| {
            let message = format!("a reducer panicked: {}", crate::panic_text(&*panic));
            Err(Reason { code: ReasonCode::NodeError, message, node: Some(fork.join.clone()) })
        });
        let checked = merged.and_then(|patches| {
            let reason = |fault: crate::NodeError| Reason {
                code: ReasonCode::NodeError,
                message: format!("{}: {}", fault.code(), fault.message()),
                node: Some(fork.join.clone()),
            };
            check_limits(base, &patches).map_err(reason)?;
            Ok(patches)
        });
        Some(checked.map(|patches| Event::BranchJoined { branch, patches }))
    }
}

fn arrived<'a>(flow: &'a Flow, branch: &mut Vec<u32>) -> Option<&'a ForkState> {
    let Flow::Fork(fork) = flow else { return None };
    for (index, inner) in (0..).zip(&fork.branches) {
        branch.push(index);
        if let Some(found) = arrived(&inner.flow, branch) {
            return Some(found);
        }
        branch.pop();
    }
    fork.branches.iter().all(|branch| branch.flow == Flow::Arrived).then_some(fork)
}

fn merged(schema: &StateSchema, base: &State, fork: &ForkState) -> Result<Vec<Patch>, Reason> {
    let written = |branch: &Branch| -> Vec<String> {
        branch.writes.iter().map(|patch| patch.key.clone()).collect()
    };
    let keys: BTreeSet<String> = fork.branches.iter().flat_map(written).collect();
    let mut patches = Vec::new();
    for key in keys {
        patches.extend(merge_key(schema, base, fork, &key)?);
    }
    Ok(patches)
}

/// The writes of all branches to one key, as patches on the state before the fork.
fn merge_key(
    schema: &StateSchema,
    base: &State,
    fork: &ForkState,
    key: &str,
) -> Result<Vec<Patch>, Reason> {
    let ops = |branch: &'_ Branch| -> Vec<PatchOp> {
        branch.writes.iter().filter(|p| p.key == key).map(|p| p.op.clone()).collect()
    };
    let writers: Vec<(usize, &Branch, Vec<PatchOp>)> = fork
        .branches
        .iter()
        .enumerate()
        .map(|(index, branch)| (index, branch, ops(branch)))
        .filter(|(_, branch, ops)| {
            let replaces = ops.iter().any(is_replacement);
            !ops.is_empty() && !(replaces && branch.state.get(key) == base.get(key))
        })
        .collect();
    let replaces = |ops: &[PatchOp]| ops.iter().any(is_replacement);
    if !writers.iter().any(|(_, _, ops)| replaces(ops)) {
        let ops = writers.into_iter().flat_map(|(_, _, ops)| ops);
        return Ok(reduce_again(schema, base, key, ops));
    }
    let mut values = writers.iter().map(|(_, branch, _)| branch.state.get(key));
    let first = values.next().flatten();
    if values.any(|value| value != first) {
        return Err(conflict(fork, key, writers.iter().map(|(index, ..)| *index)));
    }
    let op = first.map_or(PatchOp::Unset, |value| PatchOp::Set(value.clone()));
    Ok(vec![Patch { key: key.to_owned(), op }])
}

fn is_replacement(op: &PatchOp) -> bool {
    match op {
        PatchOp::Set(_) | PatchOp::Unset => true,
        PatchOp::Append(_) | PatchOp::Merge(_) | PatchOp::Reduced { .. } => false,
    }
}

/// Additive writes one after another; a custom reducer is asked again with what came before.
fn reduce_again(
    schema: &StateSchema,
    base: &State,
    key: &str,
    ops: impl Iterator<Item = PatchOp>,
) -> Vec<Patch> {
    let mut current: State =
        base.get(key).map(|value| (key.to_owned(), value.clone())).into_iter().collect();
    let mut patches = Vec::new();
    for op in ops {
        let op = match op {
            PatchOp::Reduced { update, .. } => {
                let existing: Option<&Value> = current.get(key);
                schema.reduce(key, existing, update)
            }
            PatchOp::Append(_) | PatchOp::Merge(_) | PatchOp::Set(_) | PatchOp::Unset => op,
        };
        let patch = Patch { key: key.to_owned(), op };
        current.apply(std::slice::from_ref(&patch));
        patches.push(patch);
    }
    patches
}

fn conflict(fork: &ForkState, key: &str, writers: impl Iterator<Item = usize>) -> Reason {
    let names: Vec<String> = writers
        .map(|index| fork.branches.get(index).map(|b| b.first.as_str()).unwrap_or_default())
        .map(|node| format!("{node:?}"))
        .collect();
    let message = format!(
        "the branches {} replace the key {key:?} with different values; give the key a reducer, \
         or let one branch write it",
        names.join(" and ")
    );
    Reason { code: ReasonCode::WriteConflict, message, node: Some(fork.join.clone()) }
}
