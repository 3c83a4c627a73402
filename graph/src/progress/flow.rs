//! Flows: the tree of a run's position.

use serde::{Deserialize, Serialize};

use super::Task;
use crate::{Patch, State};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Flow {
    /// The flow has come to the join of its fork; the root flow to the end.
    #[default]
    Arrived,
    Task(Box<Task>),
    Fork(ForkState),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForkState {
    pub(crate) join: String,
    pub(crate) branches: Vec<Branch>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Branch {
    /// The node it began at; names the branch in messages.
    pub(crate) first: String,
    pub(crate) state: State,
    pub(crate) writes: Vec<Patch>,
    pub(crate) flow: Flow,
}

pub(super) fn branch_of(flow: &Flow, index: u32) -> Option<&Branch> {
    match flow {
        Flow::Fork(fork) => fork.branches.get(index as usize),
        Flow::Task(_) | Flow::Arrived => None,
    }
}

pub(super) fn branch_of_mut(flow: &mut Flow, index: u32) -> Result<&mut Branch, String> {
    let found = match flow {
        Flow::Fork(fork) => fork.branches.get_mut(index as usize),
        Flow::Task(_) | Flow::Arrived => None,
    };
    found.ok_or_else(|| format!("there is no branch {index}"))
}

/// Visits the live tasks, in the order of their branches.
pub(super) fn visit_tasks<'a>(
    flow: &'a Flow,
    branch: &mut Vec<u32>,
    visit: &mut impl FnMut(&[u32], &'a Task),
) {
    match flow {
        Flow::Arrived => {}
        Flow::Task(task) => visit(branch, task),
        Flow::Fork(fork) => {
            for (index, inner) in (0..).zip(&fork.branches) {
                branch.push(index);
                visit_tasks(&inner.flow, branch, visit);
                branch.pop();
            }
        }
    }
}

pub(super) fn each_task(flow: &mut Flow, change: &mut impl FnMut(&mut Task)) {
    match flow {
        Flow::Arrived => {}
        Flow::Task(task) => change(task),
        Flow::Fork(fork) => {
            for branch in &mut fork.branches {
                each_task(&mut branch.flow, change);
            }
        }
    }
}
