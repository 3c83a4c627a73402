//! Joins: the branches' writes, in branch order, through the reducers. Never a matter of timing.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

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

/// The writes of one branch to one key, in order.
struct Writer<'a> {
    index: usize,
    branch: &'a Branch,
    ops: Vec<&'a PatchOp>,
}

impl Writer<'_> {
    fn replaces(&self) -> bool {
        self.ops.iter().any(|op| op.is_replacement())
    }
}

fn merged(schema: &StateSchema, base: &State, fork: &ForkState) -> Result<Vec<Patch>, Reason> {
    let mut keys: BTreeMap<&str, Vec<Writer<'_>>> = BTreeMap::new();
    for (index, branch) in fork.branches.iter().enumerate() {
        for patch in &branch.writes {
            let writers = keys.entry(&patch.key).or_default();
            match writers.last_mut().filter(|last| last.index == index) {
                Some(writer) => writer.ops.push(&patch.op),
                None => writers.push(Writer { index, branch, ops: vec![&patch.op] }),
            }
        }
    }
    let mut patches = Vec::new();
    for (key, writers) in keys {
        patches.extend(merge_key(schema, base, fork, (key, writers))?);
    }
    Ok(patches)
}

/// The writes of all branches to one key, as patches on the state before the fork.
fn merge_key(
    schema: &StateSchema,
    base: &State,
    fork: &ForkState,
    (key, mut writers): (&str, Vec<Writer<'_>>),
) -> Result<Vec<Patch>, Reason> {
    // A branch that put back what was there before has written nothing.
    writers.retain(|w| !(w.replaces() && w.branch.state.get(key) == base.get(key)));
    if !writers.iter().any(Writer::replaces) {
        let ops = writers.iter().flat_map(|writer| writer.ops.iter().copied());
        return Ok(reduce_again(schema, base, key, ops));
    }
    if !writers.iter().all(Writer::replaces) {
        return Err(conflict(fork, key, writers.iter().map(|writer| writer.index)));
    }
    let mut values = writers.iter().map(|writer| writer.branch.state.get(key));
    let first = values.next().flatten();
    if values.any(|value| value != first) {
        return Err(conflict(fork, key, writers.iter().map(|writer| writer.index)));
    }
    let op = first.map_or(PatchOp::Unset, |value| PatchOp::Set(value.clone()));
    Ok(vec![Patch { key: key.to_owned(), op }])
}

/// Additive writes one after another; a custom reducer is asked again with what came before.
fn reduce_again<'a>(
    schema: &StateSchema,
    base: &State,
    key: &str,
    ops: impl Iterator<Item = &'a PatchOp>,
) -> Vec<Patch> {
    let patch = |op: PatchOp| Patch { key: key.to_owned(), op };
    // What came before, kept only for a custom reducer.
    let mut current: Option<State> = None;
    let mut patches: Vec<Patch> = Vec::new();
    for op in ops {
        if let (PatchOp::Append(items), Some(Patch { op: PatchOp::Append(all), .. })) =
            (op, patches.last_mut())
        {
            all.extend(items.iter().cloned());
            continue;
        }
        let PatchOp::Reduced { update, .. } = op else {
            patches.push(patch(op.clone()));
            continue;
        };
        let current = current.get_or_insert_with(|| {
            let value = base.get(key).map(|value| (key.to_owned(), value.clone()));
            let mut state: State = value.into_iter().collect();
            state.apply(&patches);
            state
        });
        let next = patch(schema.reduce(key, current.get(key), update.clone()));
        current.apply(std::slice::from_ref(&next));
        patches.push(next);
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
